import { type Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** A call that the source under test must be able to run well. */
export interface WorkingCall {
  readonly toolId: string;
  readonly arguments: unknown;
}

/** The adapter under test, and what it needs. */
export interface ToolsUnderTest {
  readonly adapter: Adapter<typeof ports.tools>;
  readonly works: WorkingCall;
  /** Arguments that break the schema of that tool; `hidden-word` in them must be repeated nowhere. At least one. */
  readonly broken: readonly unknown[];
  /** A call that fails at its work, whose cause says `hidden-word`; left out where no call can. */
  readonly fails?: WorkingCall;
  /** Whether that cause is the tool's own answer to the model, as an MCP server's error is; default: false, it is an error of this process. */
  readonly tellsFailures?: boolean;
  /** A call that goes on until its signal aborts; left out where none does. */
  readonly hangs?: WorkingCall;
}

/** Options of `toolsConformance`. */
export interface ToolsConformanceOptions {
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
}

const RISK_LEVELS: readonly ports.RiskLevel[] = ["low", "medium", "high", "critical"];
const CALLER: ports.ToolCaller = { userId: "ada", agentId: "helper", runId: "run_1" };

/** The law of the tools port, as vitest tests. `make` is called once per test. */
export function toolsConformance(
  name: string,
  make: () => ToolsUnderTest | Promise<ToolsUnderTest>,
  { others = [] }: ToolsConformanceOptions = {},
): void {
  describeSuite(`tools port: ${name}`, () => {
    let made: ToolsUnderTest;
    let opened: OpenAdapter<ports.ToolSource>;
    let source: ports.ToolSource;
    beforeEach(async () => {
      made = await make();
      opened = await openAdapter(made.adapter, others);
      source = opened.port;
    });
    afterEach(() => opened.close());

    const quiet = (): AbortSignal => new AbortController().signal;
    const call = (made: WorkingCall, signal = quiet()): Promise<ports.ToolResult> =>
      source.call({ ...made, caller: CALLER }, signal);
    const failure = (made: WorkingCall, signal?: AbortSignal): Promise<unknown> =>
      call(made, signal).catch((error: unknown) => error);

    describe("list", () => {
      it("names the source, and gives every tool once, by an id and a name that a model can call", async () => {
        expect(source.id).toMatch(/./);
        const tools = await source.list();
        expect(new Set(tools.map(({ id }) => id)).size).toBe(tools.length);
        for (const tool of tools) {
          expect(tool.id).toMatch(/^\S+$/);
          expect(tool.name).toMatch(/^[A-Za-z0-9_-]{1,128}$/);
          expect(tool.description).toMatch(/\S/);
        }
        expect(tools.map(({ id }) => id)).toContain(made.works.toolId);
      });

      it("gives an object's JSON Schema, a risk level, whether a person must agree (open points 3), and whether it is idempotent", async () => {
        for (const tool of await source.list(quiet())) {
          expect(tool.inputSchema["type"]).toBe("object");
          expect(JSON.parse(JSON.stringify(tool.inputSchema))).toEqual(tool.inputSchema);
          expect(RISK_LEVELS).toContain(tool.riskLevel);
          expect(tool.requiresConfirmation).toBeTypeOf("boolean");
          expect(tool.idempotent).toBeTypeOf("boolean");
        }
      });

      it("is plain data that tells the same again", async () => {
        const listed = await source.list();
        expect(JSON.parse(JSON.stringify(listed))).toEqual(listed);
        expect(await source.list()).toEqual(listed);
      });
    });

    describe("call", () => {
      it("answers with content that a model can read", async () => {
        const result = await call(made.works);
        expect(result.isError).toBe(false);
        for (const part of result.content) {
          if (part.type === "text") expect(part.text).toBeTypeOf("string");
          else
            expect([part.type, part.mimeType, part.data]).toEqual([
              "image",
              expect.stringMatching(/^image\//),
              expect.stringMatching(/^[A-Za-z0-9+/]+=*$/),
            ]);
        }
      });

      it("runs the same call again", async () => {
        await call(made.works);
        expect((await call(made.works)).isError).toBe(false);
      });

      it.each(["", "no-such-tool", "constructor", "__proto__", "a/b"])("throws ToolNotFound for the id %j", async (toolId) => {
        expect(await failure({ ...made.works, toolId })).toBeInstanceOf(ports.ToolNotFound);
      });

      it("throws ToolArgumentsInvalid for arguments that break the schema, without their values in the message", async () => {
        expect(made.broken.length).toBeGreaterThan(0);
        for (const broken of made.broken) {
          const error = await failure({ ...made.works, arguments: broken });
          expect(error).toBeInstanceOf(ports.ToolArgumentsInvalid);
          expect((error as Error).message).toMatch(/\S/);
          expect((error as Error).message).not.toContain("hidden-word");
        }
      });

      it("throws the reason of a signal that has aborted", async () => {
        const reason = new Error("the turn was stopped");
        expect(await failure(made.works, AbortSignal.abort(reason))).toBe(reason);
      });

      it("gives a result with isError for a tool that fails at its work: with its own words, and without those of an error", async ({
        skip,
      }) => {
        if (!made.fails) return skip("No call of this source can fail");
        const result = await call(made.fails);
        expect(result.isError).toBe(true);
        expect(result.content).not.toHaveLength(0);
        expect(JSON.stringify(result).includes("hidden-word")).toBe(made.tellsFailures ?? false);
      });

      it("throws the signal's reason as soon as it aborts", async ({ skip }) => {
        if (!made.hangs) return skip("No call of this source goes on");
        const stopping = new AbortController();
        const stopped = failure(made.hangs, stopping.signal);
        const reason = new Error("the turn was stopped");
        stopping.abort(reason);
        expect(await stopped).toBe(reason);
      });
    });
  });
}
