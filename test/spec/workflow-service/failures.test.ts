import { createManualClock } from "@portico/adapters/clock/manual";
import { httpNode } from "@portico/workflow-nodes/http";
import { describe, expect, it } from "vitest";
import { startHookServer } from "../../harness/hook-server.ts";
import { createScriptedNodes } from "../../harness/scripted-node.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const fail = { type: "fail", with: { message: "It broke" } };
const telling = { type: "scripted", with: { say: "${{ failure }}" } };
const cleanUp = { type: "scripted", if: "always", with: { say: "clean" } };

async function run(definition: object, parameters: object = {}) {
  await using service = await startWorkflowService({ definitions: { "w.json": definition } });
  const runId = await service.trigger("w", parameters);
  const detail = await service.ended("w", runId);
  return { runId, detail, played: service.nodes.played };
}

async function problems(definition: object): Promise<readonly string[]> {
  await using service = await startWorkflowService({ definitions: { "w.json": definition } });
  const { broken } = (await service.call("GET", "/api/workflows")).body;
  return broken.flatMap(({ problems: found }: any) => found.map(({ message }: { message: string }) => message));
}

describe("`onFailure` of a definition", () => {
  it("gets the first error and the times of a failed run, which stays failed with this error", async () => {
    const { runId, detail, played } = await run({ nodes: { a: fail }, onFailure: telling });
    expect(detail).toMatchObject({ status: "failed", error: { code: "failed", message: "It broke", nodeId: "a" } });
    expect(played).toMatchObject([{ nodeId: "onFailure", attempt: 1 }]);
    expect(played[0]!.say).toEqual({
      ...{ runId, workflowId: "w", nodeId: "a", code: "failed", message: "It broke" },
      ...{ startedAt: detail.startedAt, endedAt: expect.any(String) },
    });
    expect(detail.nodeResults.onFailure).toMatchObject({ type: "scripted", status: "completed" });
    expect(detail.error).not.toHaveProperty("status");
  });

  it("reads the results of all nodes, and can have a condition", async () => {
    const nodes = { a: { type: "transform", with: { value: 5 } }, b: { ...fail, needs: ["a"] } };
    const reading = { type: "scripted", with: { say: "${{ [nodes.a.output, nodes.b.status, nodes.b.error.message] }}" } };
    expect((await run({ nodes, onFailure: reading })).played[0]!.say).toEqual([5, "failed", "It broke"]);
    const { detail, played } = await run({ nodes, onFailure: { ...telling, if: "failure.code == 'rejected'" } });
    expect(played).toEqual([]);
    expect(detail.nodeResults.onFailure).toMatchObject({ status: "skipped" });
  });

  it("cannot hide the error by its own failure, which is recorded beside it", async () => {
    const { detail } = await run({
      nodes: { a: fail },
      onFailure: { type: "fail", with: { message: "This, too: ${{ failure.code }}" } },
    });
    expect(detail).toMatchObject({ status: "failed", error: { nodeId: "a", message: "It broke" } });
    expect(detail.nodeResults.onFailure).toMatchObject({ status: "failed", error: { message: "This, too: failed" } });
  });

  it("runs for a run that timed out, and for outputs that cannot be evaluated", async () => {
    const clock = createManualClock();
    const nodes = { a: { type: "repeatable", with: { gate: "never" } } };
    await using service = await startWorkflowService({
      definitions: { "w.json": { settings: { timeout: "1m" }, nodes, onFailure: telling } },
      clock,
    });
    const runId = await service.trigger("w");
    await expect.poll(() => service.nodes.played.length).toBe(1);
    await clock.advance(60_000);
    expect(await service.ended("w", runId)).toMatchObject({ status: "failed", error: { code: "timeout" } });
    expect(service.nodes.played[1]!.say).toMatchObject({ code: "timeout", nodeId: null });
    const { played } = await run({
      nodes: { b: { type: "transform", with: { value: 1 } } },
      outputs: { x: "${{ parameters.absent }}" },
      onFailure: telling,
    });
    expect(played[0]!.say).toMatchObject({ code: "outputs_failed" });
  });

  it("runs neither for completed nor for cancelled runs", async () => {
    const nodes = { a: { type: "repeatable", with: { gate: "held" } } };
    await using service = await startWorkflowService({ definitions: { "w.json": { nodes, onFailure: telling } } });
    const cancelled = await service.trigger("w");
    await expect.poll(() => service.nodes.played.length).toBe(1);
    const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
    await service.call("POST", `/api/workflow/w/runs/${cancelled}/cancel`, undefined, { headers });
    expect(await service.ended("w", cancelled)).toMatchObject({ status: "cancelled" });
    service.nodes.gate("held").open();
    const completed = await service.trigger("w");
    expect(await service.ended("w", completed)).toMatchObject({ status: "completed" });
    expect(service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["a", "a"]);
  });

  it("starts a workflow that gets the error", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: { a: fail },
          onFailure: { type: "workflow", with: { workflow: "alarm", parameters: { about: "${{ failure }}" } } },
        },
        "alarm.json": {
          parameters: { type: "object", required: ["about"] },
          nodes: { tell: { type: "scripted", with: { say: "${{ parameters.about.message }}" } } },
        },
      },
    });
    const runId = await service.trigger("w");
    expect(await service.ended("w", runId)).toMatchObject({ status: "failed", error: { message: "It broke" } });
    expect(service.nodes.played.map(({ say }) => say)).toEqual(["It broke"]);
    const { runs } = (await service.call("GET", "/api/workflow/alarm/runs")).body;
    expect(runs).toMatchObject([{ status: "completed", parentRunId: runId }]);
  });

  it("retries as its `retry` says, and ends after ten minutes", async () => {
    const clock = createManualClock();
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: { a: fail },
          onFailure: { type: "repeatable", retry: { attempts: 3, delay: "1s" }, with: { say: 1, fails: 2 } },
        },
        "slow.json": { nodes: { a: fail }, onFailure: { type: "repeatable", with: { gate: "never" } } },
      },
      clock,
    });
    const runId = await service.trigger("w");
    const slow = await service.trigger("slow");
    await expect
      .poll(async () => {
        await clock.advance(1000);
        return (await service.detail("w", runId)).status;
      })
      .toBe("failed");
    expect((await service.detail("w", runId)).nodeResults.onFailure).toMatchObject({ status: "completed", attempts: 3 });
    expect((await service.detail("slow", slow)).status).toBe("running");
    await clock.jump(600_000);
    const ended = await service.ended("slow", slow);
    expect(ended).toMatchObject({
      status: "failed",
      error: { message: "It broke" },
      nodeResults: { onFailure: { status: "cancelled" } },
    });
  });

  it.each([
    ["repeats where it may", "repeatable", 2, "completed"],
    ["does not repeat where it may not", "scripted", 1, "failed"],
  ])("after a restart %s, and the first error stays", async (_what, type, times, status) => {
    const definition = { nodes: { a: fail }, onFailure: { type, with: { gate: "held" } } };
    const first = await startWorkflowService({ definitions: { "w.json": definition } });
    const runId = await first.trigger("w");
    await expect.poll(() => first.nodes.played.length).toBe(1);
    const nodes = createScriptedNodes();
    nodes.gate("held").open();
    await using second = await startWorkflowService({ dataDir: first.dataDir, nodes });
    const detail = await second.ended("w", runId);
    expect(detail).toMatchObject({ status: "failed", error: { nodeId: "a" }, nodeResults: { onFailure: { status } } });
    expect([...first.nodes.played, ...nodes.played]).toHaveLength(times);
    await first.close().catch(() => {});
  });

  it("belongs to each failed run: a run that resumes a failed one has its own", async () => {
    await using service = await startWorkflowService({ definitions: { "w.json": { nodes: { a: fail }, onFailure: telling } } });
    const first = await service.trigger("w");
    await service.ended("w", first);
    const second = await resume(service, first);
    expect(await service.ended("w", second)).toMatchObject({ status: "failed" });
    expect(service.nodes.played.map(({ runId }) => runId)).toEqual([first, second]);
  });

  it.each<[string, (url: string) => object]>([
    ["a node", (url) => ({ type: "http", with: { method: "POST", url, body: {}, key: true } })],
    [
      "a map",
      (url) => ({
        type: "map",
        with: {
          items: "${{ [1] }}",
          nodes: { send: { type: "http", with: { method: "POST", url, body: {}, key: true } } },
          result: "item",
        },
      }),
    ],
    ["a workflow", () => ({ type: "workflow", with: { workflow: "alarm", parameters: { about: "${{ failure.runId }}" } } })],
  ])(
    "of %s runs once for each failed run of a chain, with the key of its run, also if the process ends meanwhile",
    async (_of, make) => {
      await using hook = await startHookServer();
      hook.status = undefined;
      const send = { type: "http", with: { method: "POST", url: hook.url, body: {}, key: true } };
      const definitions = {
        "w.json": { nodes: { a: fail }, onFailure: make(hook.url) },
        "alarm.json": { parameters: { type: "object", required: ["about"] }, nodes: { send } },
      };
      const adapters = [httpNode({ allow: [hook.host] })];
      const before = await startWorkflowService({ definitions, adapters });
      const first = await before.trigger("w");
      await expect.poll(() => hook.received.length).toBe(1);
      hook.status = 204;
      await using service = await startWorkflowService({ definitions, adapters, dataDir: before.dataDir });
      const runs = [first];
      for (let at = 0; at < 3; at++) {
        if (at > 0) runs.push(await resume(service, runs.at(-1)!));
        expect(await service.ended("w", runs.at(-1)!)).toMatchObject({
          status: "failed",
          error: { message: "It broke" },
          nodeResults: { onFailure: { status: "completed" } },
        });
      }
      const keys = [...new Set(hook.received.map(({ headers }) => String(headers["idempotency-key"])))];
      const { runs: alarms } = (await service.call("GET", "/api/workflow/alarm/runs")).body;
      const senders = alarms.length > 0 ? alarms.map(({ runId }: any) => runId).reverse() : runs;
      expect(keys.map((key) => key.split(":")[0])).toEqual(senders);
      expect(new Set(senders).size).toBe(3);
      expect(alarms.map(({ parentRunId }: any) => parentRunId).reverse()).toEqual(alarms.length > 0 ? runs : []);
      await before.close().catch(() => {});
    },
  );

  it.each([
    ["a need", { ...telling, needs: ["a"] }, "`onFailure` has no `needs`"],
    ["onError", { ...telling, onError: "continue" }, "`onFailure` has no `onError`"],
    ["a gate", { type: "human_gate", with: { title: "Well?" } }, "`onFailure` cannot wait for a person"],
    ["always", { ...telling, if: "always" }, "`onFailure` always runs"],
    ["an unknown field", { type: "scripted", with: { say: "${{ failure.reason }}" } }, 'There is no field of `failure` "reason"'],
    ["an unknown kind", { type: "pigeon" }, 'There is no kind of node "pigeon"'],
  ])("is refused with %s", async (_what, onFailure, message) => {
    expect(await problems({ nodes: { a: fail }, onFailure })).toContainEqual(expect.stringContaining(message));
  });

  it("is the only place that can name `failure`, and no node has its name", async () => {
    expect(await problems({ nodes: { a: telling } })).toEqual(["`failure` is known in `onFailure` only"]);
    expect(await problems({ nodes: { onFailure: fail }, onFailure: telling })).toContainEqual(
      expect.stringContaining("cannot be called"),
    );
    expect(await problems({ nodes: { onFailure: fail } })).toEqual([]);
  });
});

async function resume(service: WorkflowService, runId: string): Promise<string> {
  const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
  const answer = await service.call("POST", `/api/workflow/w/runs/${runId}/resume`, { idempotencyKey: runId }, { headers });
  expect(answer.status).toBe(200);
  return answer.body.runId;
}

describe("a node with `if: always`", () => {
  it("runs when a node that it needs has failed, and the run stays failed with the first error", async () => {
    const nodes = {
      a: fail,
      clean: { ...cleanUp, needs: ["a"], with: { say: "${{ nodes.a.status }}" } },
      b: { ...fail, needs: ["clean"] },
    };
    const { detail, played } = await run({ nodes });
    expect(detail).toMatchObject({ status: "failed", error: { nodeId: "a", message: "It broke" } });
    expect(played.map(({ say }) => say)).toEqual(["failed"]);
    expect(detail.nodeResults).toMatchObject({ clean: { status: "completed" }, b: { status: "cancelled" } });
  });

  it.each([
    ["completed", { a: { type: "transform", with: { value: 1 } } }, ["a"], "completed"],
    ["was skipped", { a: { type: "transform", if: false, with: { value: 1 } } }, ["a"], "completed"],
    ["took another case", { a: { type: "branch", with: { cases: { x: false }, else: "y" } } }, ["a.x"], "completed"],
    ["failed with `onError: continue`", { a: { ...fail, onError: "continue" } }, ["a"], "completed"],
    [
      "was cancelled",
      { z: fail, b: { ...fail, needs: ["z"] }, a: { type: "transform", needs: ["b"], with: { value: 1 } } },
      ["a"],
      "failed",
    ],
  ])("runs when its need %s", async (_how, before, needs, status) => {
    const { detail, played } = await run({ nodes: { ...before, clean: { ...cleanUp, needs } } });
    expect([detail.status, played.map(({ say }) => say)]).toEqual([status, ["clean"]]);
  });

  it("waits for all its needs, and runs only once where nothing fails", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: {
            a: { type: "repeatable", with: { say: "a", gate: "held" } },
            b: { type: "transform", with: { value: 1 } },
            clean: { ...cleanUp, needs: ["a", "b"] },
          },
        },
      },
    });
    const runId = await service.trigger("w");
    await service.until("w", runId, ({ nodeResults }) => nodeResults?.b?.status === "completed");
    expect(service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["a"]);
    service.nodes.gate("held").open();
    expect(await service.ended("w", runId)).toMatchObject({ status: "completed" });
    expect(service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["a", "clean"]);
  });

  it("goes on when another node fails meanwhile, and before `onFailure`", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: {
            a: { type: "repeatable", with: { gate: "fails", fails: 1, retryable: false } },
            clean: { type: "scripted", if: "always", with: { say: "clean", gate: "held" } },
            after: { ...cleanUp, needs: ["clean"], with: { say: "after" } },
          },
          onFailure: { type: "scripted", with: { say: "told" } },
        },
      },
    });
    const runId = await service.trigger("w");
    await expect.poll(() => service.nodes.played.length).toBe(2);
    service.nodes.gate("fails").open();
    await service.until("w", runId, ({ nodeResults }) => nodeResults?.a?.status === "failed");
    service.nodes.gate("held").open();
    const detail = await service.ended("w", runId);
    expect(detail).toMatchObject({ status: "failed", error: { nodeId: "a" }, nodeResults: { clean: { status: "completed" } } });
    expect(service.nodes.played.slice(2).map(({ say }) => say)).toEqual(["after", "told"]);
  });

  it("runs after the time of the run, with ten minutes of its own", async () => {
    const clock = createManualClock();
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          settings: { timeout: "1m" },
          nodes: {
            a: { type: "repeatable", with: { gate: "never" } },
            quick: { ...cleanUp, needs: ["a"] },
            slow: { ...cleanUp, needs: ["a"], with: { gate: "never" } },
          },
        },
      },
      clock,
    });
    const runId = await service.trigger("w");
    await expect.poll(() => service.nodes.played.length).toBe(1);
    await clock.advance(60_000);
    await expect.poll(() => service.nodes.played.length).toBe(3);
    await clock.advance(599_000);
    expect((await service.detail("w", runId)).status).toBe("running");
    await clock.advance(1000);
    const detail = await service.ended("w", runId);
    expect(detail).toMatchObject({ status: "failed", error: { code: "timeout" } });
    expect(detail.nodeResults).toMatchObject({ quick: { status: "completed" }, slow: { status: "cancelled" } });
  });

  it("that fails itself does not replace the first error, and fails a run that has no other", async () => {
    const both = await run({
      nodes: { a: fail, clean: { type: "fail", if: "always", needs: ["a"], with: { message: "Not clean" } } },
    });
    expect(both.detail).toMatchObject({ status: "failed", error: { nodeId: "a" } });
    expect(both.detail.nodeResults.clean).toMatchObject({ status: "failed", error: { message: "Not clean" } });
    const alone = await run({ nodes: { clean: { type: "fail", if: "always", with: { message: "Not clean" } } } });
    expect(alone.detail).toMatchObject({ status: "failed", error: { nodeId: "clean" } });
  });

  it("does not run in a cancelled run", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": { nodes: { a: { type: "repeatable", with: { gate: "never" } }, clean: { ...cleanUp, needs: ["a"] } } },
      },
    });
    const runId = await service.trigger("w");
    await expect.poll(() => service.nodes.played.length).toBe(1);
    const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
    await service.call("POST", `/api/workflow/w/runs/${runId}/cancel`, undefined, { headers });
    expect(await service.ended("w", runId)).toMatchObject({
      status: "cancelled",
      nodeResults: { clean: { status: "cancelled" } },
    });
    expect(service.nodes.played).toHaveLength(1);
  });

  it("runs once in a run that another process takes over while it runs, if it may not be repeated", async () => {
    const nodes = {
      a: fail,
      one: { ...cleanUp, needs: ["a"] },
      two: { type: "repeatable", if: "always", needs: ["one"], with: { gate: "held" } },
    };
    const first = await startWorkflowService({ definitions: { "w.json": { nodes } } });
    const runId = await first.trigger("w");
    await expect.poll(() => first.nodes.played.length).toBe(2);
    const scripted = createScriptedNodes();
    scripted.gate("held").open();
    await using second = await startWorkflowService({ dataDir: first.dataDir, nodes: scripted });
    expect(await second.ended("w", runId)).toMatchObject({ status: "failed", error: { nodeId: "a" } });
    expect([...first.nodes.played, ...scripted.played].map(({ nodeId }) => nodeId)).toEqual(["one", "two", "two"]);
    await first.close().catch(() => {});
  });

  it("sees the same results after a restart: the nodes that the first error stopped stay cancelled", async () => {
    const nodes = {
      stopped: { type: "repeatable", with: { gate: "never" } },
      a: { type: "repeatable", with: { gate: "fails", fails: 1, retryable: false } },
      clean: {
        ...{ type: "repeatable", if: "always", needs: ["stopped", "a"] },
        with: { say: "${{ [nodes.stopped.status, nodes.a.status] }}", gate: "held" },
      },
    };
    const first = await startWorkflowService({ definitions: { "w.json": { nodes } } });
    const runId = await first.trigger("w");
    await expect.poll(() => first.nodes.played.length).toBe(2);
    first.nodes.gate("fails").open();
    await expect.poll(() => first.nodes.played.length).toBe(3);
    const scripted = createScriptedNodes();
    scripted.gate("held").open();
    await using second = await startWorkflowService({ dataDir: first.dataDir, nodes: scripted });
    const detail = await second.ended("w", runId);
    expect(detail).toMatchObject({ status: "failed", error: { nodeId: "a" } });
    expect([first.nodes.played[2]!.say, ...scripted.played.map(({ say }) => say)]).toEqual([
      ["cancelled", "failed"],
      ["cancelled", "failed"],
    ]);
    await first.close().catch(() => {});
  });

  it("runs again in a run that resumes a failed one, because a node that it needs does", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: {
            a: { type: "scripted", with: { say: "a" } },
            b: { ...fail, needs: ["a"] },
            early: { ...cleanUp, needs: ["a"], with: { say: "early" } },
            clean: { ...cleanUp, needs: ["b"] },
          },
        },
      },
    });
    const first = await service.trigger("w");
    await service.ended("w", first);
    const second = await resume(service, first);
    expect(await service.ended("w", second)).toMatchObject({ status: "failed", nodeResults: { early: { reused: true } } });
    const said = (runId: string) => service.nodes.played.filter((each) => each.runId === runId).map(({ say }) => say);
    expect([said(first).sort(), said(second)]).toEqual([["a", "clean", "early"], ["clean"]]);
  });

  it("sends idempotency keys of its own run, because an earlier run of the chain may have cleaned up, too", async () => {
    await using hook = await startHookServer();
    const http = { type: "http", if: "always", needs: ["a"], with: { method: "POST", url: hook.url, body: {}, key: "node" } };
    await using service = await startWorkflowService({
      definitions: { "w.json": { nodes: { a: fail, clean: http } } },
      adapters: [httpNode({ allow: [hook.host] })],
    });
    const first = await service.trigger("w");
    await service.ended("w", first);
    const second = await resume(service, first);
    await service.ended("w", second);
    const keys = hook.received.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toEqual([`${first}:clean`, `${second}:clean`]);
  });

  it("of a map or a workflow begins anew in a run that resumes a failed one, with keys of its own run", async () => {
    await using hook = await startHookServer();
    const send = { type: "http", with: { method: "POST", url: hook.url, body: {}, key: true } };
    const breaks = { ...fail, needs: ["send"], if: "item == 2" };
    const always = { if: "always", needs: ["a"] };
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: {
            a: fail,
            each: {
              ...{ type: "map", ...always },
              with: { items: "${{ [1, 2] }}", concurrency: 1, nodes: { send, breaks }, result: "item" },
            },
            clean: { type: "workflow", ...always, needs: ["each"], with: { workflow: "clean" } },
          },
        },
        "clean.json": { nodes: { send, breaks: { ...fail, needs: ["send"] } } },
      },
      adapters: [httpNode({ allow: [hook.host] })],
    });
    const first = await service.trigger("w");
    await service.ended("w", first);
    const second = await resume(service, first);
    await service.ended("w", second);
    const { runs } = (await service.call("GET", "/api/workflow/clean/runs")).body;
    const [later, earlier] = runs.map(({ runId }: { runId: string }) => runId);
    const keysOf = (run: string, child: string) => [`${run}:each[0].send:1`, `${run}:each[1].send:1`, `${child}:send:1`];
    expect(hook.received.map(({ headers }) => decodeURIComponent(String(headers["idempotency-key"])))).toEqual([
      ...keysOf(first, earlier),
      ...keysOf(second, later),
    ]);
  });

  it.each([
    ["inside `map`", { m: { type: "map", with: { items: "${{ [1] }}", nodes: { c: cleanUp } } } }, "outside of `map` and `loop`"],
    ["for a gate", { g: { type: "human_gate", if: "always", with: { title: "Well?" } } }, "cannot run `always`"],
  ])("is refused %s", async (_where, nodes, message) => {
    expect(await problems({ nodes })).toContainEqual(expect.stringContaining(message));
  });

  it("is shown in the definition, with `onFailure`", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": { nodes: { a: fail, clean: { ...cleanUp, needs: ["a"] } }, onFailure: { ...telling, name: "Tell" } },
      },
    });
    const { body } = await service.call("GET", "/api/workflow/w/definition");
    expect(body.nodes).toMatchObject([{ id: "a" }, { id: "clean", always: true, conditional: false }]);
    expect(body.onFailure).toEqual({ type: "scripted", name: "Tell" });
  });
});
