import { getEventListeners } from "node:events";
import { type Adapter, type KnownParts, nodeRulesOf, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** What a definition says under `with`, its templates filled in. */
export type With = Readonly<Record<string, unknown>>;

/** The adapter under test, and what it needs. */
export interface WorkflowNodeUnderTest {
  readonly adapter: Adapter<typeof ports.workflowNodes>;
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
  /** Ends well; the only one may be without templates. */
  readonly works: With;
  /** Break the type's schema, beside what has a key that the type does not know. */
  readonly broken?: readonly With[];
  /** Good by its schema, and fails at its work; `hidden-word` is in it, or comes back to it, and must be told nowhere. Left out where nothing can. */
  readonly fails?: With;
  /** Goes on until its signal aborts; left out where nothing does. */
  readonly hangs?: With;
}

const NOTHING_KNOWN: KnownParts = {
  providers: [],
  models: () => undefined,
  toolSources: 0,
  tool: () => undefined,
  knowsAllTools: () => false,
};

const STEP: ports.NodeStep = { runId: "run_1", workflowId: "triage", nodeId: "each[3].node", attempt: 1, userId: "ada" };

/** What a node is given for this `with`. Throws TypeError where its schema refuses it. */
export function parseInput(node: ports.NodeRules, given: With): unknown {
  const result = node.input["~standard"].validate(given);
  if (result instanceof Promise) throw new TypeError("A node's schema must not need to wait");
  if (result.issues) throw new TypeError(result.issues.map(({ message }) => message).join("; "));
  return result.value;
}

/** The law of workflow nodes, as vitest tests. `make` is called once per test. */
export function workflowNodesConformance(name: string, make: () => WorkflowNodeUnderTest | Promise<WorkflowNodeUnderTest>): void {
  describeSuite(`workflow-nodes port: ${name}`, () => {
    let made: WorkflowNodeUnderTest;
    let opened: OpenAdapter<ports.WorkflowNode>;
    let node: ports.WorkflowNode;
    beforeEach(async () => {
      made = await make();
      opened = await openAdapter(made.adapter, made.others);
      node = opened.port;
    });
    afterEach(() => opened.close());

    const quiet = (): AbortSignal => new AbortController().signal;
    const run = async (given: With, signal = quiet()): Promise<unknown> =>
      node.run({ input: parseInput(node, given), step: STEP, signal });
    const failure = (given: With, signal?: AbortSignal): Promise<unknown> =>
      run(given, signal).then(
        (output) => expect.fail(`It gave ${JSON.stringify(output)}`),
        (error: unknown) => error,
      );

    describe("rules", () => {
      it("has a type that a definition can name", () => {
        expect(node.type).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      });

      it("takes what its schema takes, and no key that it does not know", () => {
        parseInput(node, made.works);
        for (const broken of [{ ...made.works, "no-such-key": 1 }, ...(made.broken ?? [])])
          expect(() => parseInput(node, broken), JSON.stringify(broken)).toThrow(TypeError);
      });

      it("finds nothing wrong with what works, and tells faults by their path in words", () => {
        expect(node.check?.(made.works) ?? []).toEqual([]);
        const strange = Object.fromEntries(Object.keys(made.works).map((key) => [key, { "no such": ["thing"] }]));
        for (const written of [{}, strange, ...(made.broken ?? [])]) {
          for (const { path, message } of node.check?.(written) ?? []) {
            expect(path.every((part) => typeof part === "string" || typeof part === "number")).toBe(true);
            expect(message).toMatch(/\S/);
          }
        }
      });

      it("does not judge templates before they are filled in", () => {
        const written = Object.entries(made.works).map(([key, value]) => [
          key,
          node.keys?.[key] ? value : "${{ parameters.given }}",
        ]);
        expect(node.check?.(Object.fromEntries(written)) ?? []).toEqual([]);
      });

      it("are told before it is open as they are told when it is, where it tells them before", ({ skip }) => {
        const before = nodeRulesOf(made.adapter, NOTHING_KNOWN);
        if (!before) return skip("Its rules are known only when it is open");
        const told = ({ type, keys, pure, cases }: ports.NodeRules) => ({ type, keys, pure, cases: cases?.(made.works) });
        expect(told(before)).toEqual(told(node));
        parseInput(before, made.works);
        for (const broken of [{ ...made.works, "no-such-key": 1 }, ...(made.broken ?? [])])
          expect(() => parseInput(before, broken), JSON.stringify(broken)).toThrow(TypeError);
        // Problems may depend on the known facts about an instance, and the list may be empty.
        for (const { message } of before.check?.(made.works) ?? []) expect(message).toMatch(/\S/);
      });

      it("says whether it may be executed again", () => {
        const input = parseInput(node, made.works);
        expect(typeof node.repeatable === "function" ? node.repeatable(input) : node.repeatable).toBeTypeOf("boolean");
      });
    });

    describe("run", () => {
      it("answers JSON of at most NODE_OUTPUT_BYTES", async () => {
        const output = await run(made.works);
        const text = JSON.stringify(output);
        expect(text).toBeTypeOf("string");
        expect(JSON.parse(text)).toEqual(output);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(ports.NODE_OUTPUT_BYTES);
      });

      it("is done again, and where it is pure with the same result", async () => {
        const first = await run(made.works);
        const second = await run(made.works);
        if (node.pure) expect(second).toEqual(first);
      });

      it("leaves its input as it was, and nothing at the signal", async () => {
        const given = structuredClone(made.works);
        const signal = quiet();
        await run(given, signal);
        expect(given).toEqual(made.works);
        expect(getEventListeners(signal, "abort")).toHaveLength(0);
      });

      it("throws NodeFailed for work that goes wrong: a word, a sentence without what it was given, and whether to try again", async ({
        skip,
      }) => {
        if (!made.fails) return skip("Nothing can go wrong");
        const error = (await failure(made.fails)) as ports.NodeFailed;
        expect(error).toBeInstanceOf(ports.NodeFailed);
        expect(error.code).toMatch(/^[a-z][a-z0-9_]*$/);
        expect(error.message).toMatch(/\S/);
        expect(error.message).not.toContain("hidden-word");
        expect(error.retryable).toBeTypeOf("boolean");
      });

      it("goes on working after work that went wrong", async ({ skip }) => {
        if (!made.fails) return skip("Nothing can go wrong");
        await failure(made.fails);
        await run(made.works);
      });

      it("rejects once its signal aborted, and soon", async ({ skip }) => {
        if (!made.hangs) return skip("Nothing goes on");
        const stopping = new AbortController();
        const stopped = failure(made.hangs, stopping.signal);
        setTimeout(() => stopping.abort(new Error("the run was cancelled")), 50);
        await stopped;
        await failure(made.hangs, AbortSignal.abort(new Error("the run was cancelled")));
        // A hung execution does not block later ones.
        await run(made.works);
      });
    });
  });
}
