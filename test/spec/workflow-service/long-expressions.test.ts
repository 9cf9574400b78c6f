import { Worker } from "node:worker_threads";
import { Secret } from "@portico/core";
import { afterEach, describe, expect, it, vi } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

const LONG = 30_000;
/** Takes a few per cent of the steps that an expression may take, and more than it may take on the event loop. */
const sum = (name: string) => `${name}.list.filter(x, x >= 10).map(x, x + ${name}.one)[0]`;
const list = Array.from({ length: LONG }, (_, at) => at);
/** Nearly all steps that an expression may take. The number makes each one different. */
const costly = (number: number) => `\${{ parameters.half.all(x, parameters.half.all(y, x + y + ${number} > 0)) }}`;
const half = Array.from({ length: 900 }, (_, at) => at + 1);
const limitless = "${{ parameters.list.all(x, parameters.list.all(y, x + y >= 0)) }}";

afterEach(() => vi.restoreAllMocks());

describe("expressions that take long", () => {
  it("do not hold other runs and calls: a run that begins later ends earlier", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "long.json": { nodes: { a: { type: "transform", with: { value: Array.from({ length: 60 }, (_, at) => costly(at)) } } } },
        "short.json": { nodes: { a: { type: "transform", with: { value: "${{ 1 + 1 }}" } } } },
      },
    });
    const long = await service.trigger("long", { half });
    const events = await service.events(long);
    await events.next();
    expect((await events.next())?.event).toBe("workflow:node_start");
    const short = await service.ended("short", await service.trigger("short"));
    expect(short.status).toBe("completed");
    expect((await service.detail("long", long)).status).toBe("running");
    await service.call("POST", `/api/workflow/long/runs/${long}/cancel`, undefined, {
      headers: { "x-execution-grant": await service.grant({ workflowId: "long" }) },
    });
    expect((await events.rest()).at(-1)).toMatchObject({ event: "workflow:complete", data: { status: "cancelled" } });
  });

  it("have the same results as others, wherever a definition has expressions", async () => {
    const threads = vi.spyOn(Worker.prototype, "postMessage");
    await using service = await startWorkflowService({
      definitions: {
        "all.json": {
          nodes: {
            list: { type: "transform", with: { value: { list: "${{ parameters.list }}", one: "${{ parameters.one }}" } } },
            text: {
              type: "transform",
              needs: ["list"],
              with: { value: `\${{ ${sum("nodes.list.output")} }} of \${{ ${sum("parameters")} }}` },
            },
            skipped: { type: "transform", if: `${sum("parameters")} == 12`, with: { value: 1 } },
            taken: { type: "branch", with: { cases: { no: `${sum("parameters")} == 1`, yes: `${sum("parameters")} == 11` } } },
            each: {
              type: "map",
              with: {
                items: "${{ [parameters, parameters] }}",
                nodes: { n: { type: "transform", with: { value: 1 } } },
                result: `\${{ ${sum("item")} + index }}`,
              },
            },
            again: {
              type: "loop",
              with: {
                until: `${sum("parameters")} == 11 && previous == 11`,
                nodes: { n: { type: "transform", with: { value: 1 } } },
                result: `\${{ ${sum("parameters")} }}`,
              },
            },
          },
          outputs: {
            text: "${{ nodes.text.output }}",
            skipped: "${{ nodes.skipped.status }}",
            taken: "${{ nodes.taken.output.case }}",
            each: "${{ nodes.each.output }}",
            again: "${{ nodes.again.output }}",
            here: `\${{ ${sum("parameters")} }}`,
          },
        },
      },
    });
    expect((await service.call("GET", "/api/workflows")).body.broken).toEqual([]);
    const run = await service.ended("all", await service.trigger("all", { list, one: 1 }));
    expect([run.error, run.finalOutputs]).toEqual([
      undefined,
      { text: "11 of 11", skipped: "skipped", taken: "yes", each: [11, 12], again: 11, here: 11 },
    ]);
    const sources = threads.mock.calls.flatMap(([job]) => ((job as { source?: string }).source ?? []) as string[]);
    expect(sources.length).toBeGreaterThanOrEqual(9);
  });

  it("fail if they exceed the limit, and the run says why", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "node.json": { nodes: { a: { type: "transform", with: { value: limitless } } } },
        "outputs.json": { nodes: { a: { type: "transform", with: { value: 1 } } }, outputs: { a: limitless } },
      },
    });
    const code = async (id: string) => (await service.ended(id, await service.trigger(id, { list }))).error;
    const message = expect.stringMatching(/it takes too many steps/);
    expect(await code("node")).toMatchObject({ code: "expression_failed", message });
    expect(await code("outputs")).toMatchObject({ code: "outputs_failed", message });
  });

  it("read secrets, and what they make of them is masked", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: {
            a: {
              type: "transform",
              with: { value: "${{ parameters.list.filter(x, x < 1).map(x, secrets.KEY.upperAscii())[0] }}" },
            },
          },
        },
      },
      runtime: { secrets: { KEY: new Secret("hunter2-hunter2") } },
    });
    const runId = await service.trigger("w", { list });
    const { nodeResults } = await service.ended("w", runId);
    expect(nodeResults.a.outputs).toBe("***");
  });

  it("end with the run's time", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          settings: { timeout: "300ms" },
          nodes: { a: { type: "transform", with: { value: 1 } } },
          outputs: { all: Array.from({ length: 60 }, (_, at) => costly(at)) },
        },
      },
    });
    expect(await service.ended("w", await service.trigger("w", { half }))).toMatchObject({
      status: "failed",
      error: { code: "timeout" },
    });
  });
});
