import { Secret } from "@portico/core";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createExpressions } from "../../../plugins/src/workflow-service/expressions/create-expressions.ts";
import { EXPRESSION_TURN_MS } from "../../../plugins/src/workflow-service/expressions/expression-limits.ts";
import type { Expression } from "../../../plugins/src/workflow-service/expressions/expression.ts";
import { createTurnBudget } from "../../../plugins/src/workflow-service/expressions/turn-budget.ts";
import { evaluated } from "../../../plugins/src/workflow-service/runner/node-values.ts";
import type { Frame, Running } from "../../../plugins/src/workflow-service/runner/running.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

afterEach(() => vi.restoreAllMocks());

/** Nearly all steps that an expression may take on the event loop. The number makes each one different. */
const costly = (number: number) => `parameters.half.all(x, parameters.half.all(y, x + y + ${number} > 0))`;
const half = Array.from({ length: 90 }, (_, at) => at + 1);
const numbers = (count: number) => Array.from({ length: count }, (_, at) => at);

/** Answered calls that show that the event loop was free in between. While it is held, one or two are answered: before and after. */
const SEVERAL = 4;

/** How many calls are answered, one after another, while a run works. */
async function answeredDuring(service: WorkflowService, workflowId: string) {
  const runId = await service.trigger(workflowId, { half });
  let isEnded = false;
  const ended = service.ended(workflowId, runId).finally(() => (isEnded = true));
  let answered = 0;
  while (!isEnded) {
    await service.detail(workflowId, runId);
    answered++;
  }
  return { run: await ended, answered };
}

describe("many expressions in a row, each of which may be evaluated on the event loop", () => {
  it("let calls be answered between them, and have their results", async () => {
    const word = `${costly(-1000)} || secrets.KEY == '' ? '' : secrets.KEY.upperAscii()`;
    await using service = await startWorkflowService({
      definitions: {
        "node.json": {
          nodes: {
            a: {
              type: "transform",
              with: {
                value: { all: numbers(300).map((at) => `\${{ ${costly(at)} }}`), word: `\${{ ${word} }}`, last: "${{ 1 + 1 }}" },
              },
            },
            b: { type: "transform", needs: ["a"], with: { value: "${{ nodes.a.output.word }}" } },
          },
        },
      },
      runtime: { secrets: { KEY: new Secret("hunter2-hunter2") } },
    });
    const { run, answered } = await answeredDuring(service, "node");
    expect(run).toMatchObject({
      status: "completed",
      nodeResults: { a: { outputs: { all: numbers(300).map(() => true), word: "***", last: 2 } }, b: { outputs: "***" } },
    });
    expect(answered).toBeGreaterThan(SEVERAL);
  });

  it("let calls be answered between the items of a map", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "map.json": {
          nodes: {
            m: {
              type: "map",
              with: {
                items: "lists.range(300)",
                concurrency: 64,
                nodes: { n: { type: "transform", with: { value: `\${{ ${costly(1)} }}` } } },
                result: "nodes.n.output && index >= 0",
              },
            },
          },
        },
      },
    });
    const { run, answered } = await answeredDuring(service, "map");
    expect(run).toMatchObject({ status: "completed", nodeResults: { m: { outputs: numbers(300).map(() => true) } } });
    expect(answered).toBeGreaterThan(SEVERAL);
  });

  it("fail at the first one that fails", async () => {
    const failing = numbers(60).map((at) => `\${{ ${costly(at)}${at === 40 ? " && parameters.half[90] > 0" : ""} }}`);
    await using service = await startWorkflowService({
      definitions: { "w.json": { nodes: { a: { type: "transform", with: { value: [...failing, "${{ 1 / 0 }}"] } } } } },
    });
    const { error } = await service.ended("w", await service.trigger("w", { half }));
    expect(error).toMatchObject({ code: "expression_failed", message: expect.stringContaining("the list has no such index") });
  });
});

describe("evaluations that are stopped", () => {
  const names = { before: new Set<string>(), known: new Set<string>(), isInside: {}, secrets: new Set<string>() };
  const compile = (source: string): Expression => {
    const compiled = createExpressions().compile(source, names as never);
    if ("problems" in compiled) throw new Error(compiled.problems[0]!.message);
    return compiled.expression;
  };

  it("keep their results: none is evaluated twice, and a turn of the event loop has only as many as fit into its time", async () => {
    // Each look at the clock takes a millisecond, so each evaluation does.
    let now = 0;
    vi.spyOn(performance, "now").mockImplementation(() => now++);
    let [reads, before, mostInTurn, isEnded] = [0, 0, 0, false];
    const parameters = {
      get n() {
        reads++;
        return 1;
      },
      long: Array.from({ length: 30_000 }, () => 1),
    };
    const turn = () => {
      mostInTurn = Math.max(mostInTurn, reads - before);
      before = reads;
      if (!isEnded) setImmediate(turn);
    };
    setImmediate(turn);
    const { signal } = new AbortController();
    const took: string[] = [];
    const running = {
      scope: { parameters, run: {}, secrets: {} },
      context: { signal },
      services: {
        evaluateBeside: async ({ source }: { source: string }) => {
          took.push(source);
          return { value: source };
        },
      },
    } as unknown as Running;
    const frame: Frame = { prefix: "", nodes: {}, signal };
    const sources = numbers(200).map((at) => (at % 10 === 9 ? `parameters.long.all(x, x < ${at})` : `parameters.n + ${at}`));
    const expressions = sources.map(compile);
    const values = await evaluated(running, frame, expressions, (scope) => expressions.map((each) => each.evaluate(scope)));
    isEnded = true;
    expect(values).toEqual(sources.map((source, at) => (at % 10 === 9 ? source : 1 + at)));
    expect(took).toEqual(sources.filter((_, at) => at % 10 === 9));
    // The parameters are examined once, before the first evaluation reads them.
    expect(reads).toBe(180 + 1);
    expect(mostInTurn).toBeLessThanOrEqual(EXPRESSION_TURN_MS + 1);
  });

  it("take turns: work that waits is called in its order, and only if its signal has not aborted", async () => {
    const budget = createTurnBudget(5);
    const called: string[] = [];
    const { signal } = new AbortController();
    const stopped = new AbortController();
    const work = async (name: string, abort = signal) => {
      for (let part = 1; part <= 2; part++) {
        await budget.later(() => {
          called.push(`${name}${part}`);
          budget.use(3);
        }, abort);
      }
    };
    const all = [work("a"), work("gone", stopped.signal), work("b"), work("c")];
    const reason = new Error("stopped");
    stopped.abort(reason);
    await expect(all[1]).rejects.toBe(reason);
    await Promise.all([all[0], all[2], all[3]]);
    expect(called).toEqual(["a1", "b1", "c1", "a2", "b2", "c2"]);
    expect(budget.isUsed()).toBe(true);
  });
});
