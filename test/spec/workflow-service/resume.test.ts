import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createManualClock } from "@portico/adapters/clock/manual";
import { httpNode } from "@portico/workflow-nodes/http";
import { ports, Secret } from "@portico/core";
import { describe, expect, it, vi } from "vitest";
import { createGate } from "../../harness/gate.ts";
import { createScriptedNodes } from "../../harness/scripted-node.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "../../harness/workflow-app.ts";

const held = { say: "held", gate: "held" };

/** A run of `w` that is interrupted at its node with the gate `held`, in the service that took it over. */
async function interrupted(definition: object, more: Partial<WorkflowServiceOptions> & { readonly parameters?: object } = {}) {
  const { parameters, ...options } = more;
  const first = await startWorkflowService({ ...options, definitions: { "w.json": definition, ...options.definitions } });
  const runId = await first.trigger("w", parameters);
  await expect.poll(() => first.nodes.played.some(({ say }) => say === "held")).toBe(true);
  const nodes = createScriptedNodes();
  nodes.gate("held").open();
  const service = await startWorkflowService({ ...options, dataDir: first.dataDir, nodes });
  const detail = await service.ended("w", runId);
  expect(detail.status).toBe("interrupted");
  const close = async () => {
    await service.close();
    await first.close().catch(() => {});
  };
  return { service, first, runId, detail, [Symbol.asyncDispose]: close };
}

async function resume(service: WorkflowService, runId: string, body: object = {}, order: object = {}) {
  const headers = { "x-execution-grant": await service.grant({ workflowId: "w", ...order }) };
  return service.call("POST", `/api/workflow/w/runs/${runId}/resume`, { idempotencyKey: "k", ...body }, { headers });
}

async function resumed(service: WorkflowService, runId: string, body: object = {}) {
  const answer = await resume(service, runId, body);
  expect([answer.status, answer.body.resumes]).toEqual([200, runId]);
  return service.ended("w", answer.body.runId);
}

const chain = {
  nodes: {
    a: { type: "scripted", with: { say: "once" } },
    b: { type: "scripted", needs: ["a"], with: held },
    c: { type: "scripted", needs: ["b"], with: { say: "${{ nodes.a.output + nodes.b.output }}" } },
  },
  outputs: { c: "${{ nodes.c.output }}" },
};

describe("resuming a run (open points 14)", () => {
  it("finished nodes keep their results, the interrupted node is repeated, and the old run keeps its status", async () => {
    await using run = await interrupted(chain);
    expect(run.detail.resumable).toBe(true);
    const detail = await resumed(run.service, run.runId);
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { c: "onceheld" }, resumes: run.runId });
    expect(run.service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["b", "c"]);
    expect(detail.nodeResults).toMatchObject({
      a: { reused: true, outputs: "once", startedAt: run.detail.nodeResults.a.startedAt },
    });
    expect(detail.nodeResults.b).not.toHaveProperty("reused");
    const old = await run.service.detail("w", run.runId);
    expect(old).toMatchObject({ status: "interrupted", resumedBy: detail.runId });
    expect(old).not.toHaveProperty("resumable");
  });

  it("with `as: done` the interrupted node counts as done, with the given output", async () => {
    await using run = await interrupted(chain);
    const detail = await resumed(run.service, run.runId, { as: "done", output: "byhand" });
    expect(detail).toMatchObject({ status: "completed", finalOutputs: { c: "oncebyhand" } });
    expect(run.service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["c"]);
  });

  it("with `from` a finished node is repeated, and so are the nodes that depend on it", async () => {
    await using run = await interrupted({
      nodes: {
        ...chain.nodes,
        other: { type: "scripted", with: { say: "other" } },
        x: { type: "scripted", needs: ["a"], with: { say: "x" } },
        y: { type: "scripted", needs: ["x"], with: { say: "y" } },
        b: { ...chain.nodes.b, needs: ["y"] },
      },
    });
    expect(run.detail.nodeResults.y.status).toBe("completed");
    expect((await resumed(run.service, run.runId, { from: "x" })).status).toBe("completed");
    expect(run.service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["x", "y", "b", "c"]);
  });

  it("items of a map and iterations of a loop that had finished are not repeated, nor is a node inside that counts as done", async () => {
    const inner = { a: { type: "scripted", with: { say: "${{ item }}", gate: "${{ item == 'held' ? 'held' : 'open' }}" } } };
    const definition = {
      nodes: {
        m: { type: "map", with: { items: ["x", "held", "y"], concurrency: 1, nodes: inner, result: "${{ nodes.a.output }}" } },
      },
      outputs: { m: "${{ nodes.m.output }}" },
    };
    for (const [body, m, played] of [
      [{}, ["x", "held", "y"], ["m[1].a", "m[2].a"]],
      [{ as: "done", output: "done" }, ["x", "done", "y"], ["m[2].a"]],
    ] as const) {
      const nodes = createScriptedNodes();
      nodes.gate("open").open();
      const first = await startWorkflowService({ definitions: { "w.json": definition }, nodes });
      const runId = await first.trigger("w");
      await expect.poll(() => nodes.played.some(({ say }) => say === "held")).toBe(true);
      const again = createScriptedNodes();
      again.gate("open").open();
      again.gate("held").open();
      const service = await startWorkflowService({ dataDir: first.dataDir, nodes: again });
      expect((await service.ended("w", runId)).error.nodeId).toBe("m[1].a");
      expect((await resumed(service, runId, body)).finalOutputs).toEqual({ m });
      expect(again.played.map(({ nodeId }) => nodeId)).toEqual(played);
      await service.close();
      await first.close().catch(() => {});
    }
  });

  it("a loop whose `until` never held is repeated from its first iteration, also inside a map", async () => {
    let ready = false;
    await using server = await startAnswers(() => (ready ? "yes" : "no"));
    const look = { type: "http", with: { url: server.url } };
    const poll = {
      type: "loop",
      with: { until: "previous == 'yes'", maxIterations: 3, nodes: { look }, result: "nodes.look.output.body" },
    };
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: { m: { type: "map", with: { items: "${{ [1] }}", nodes: { poll }, result: "nodes.poll.output" } } },
          outputs: { m: "${{ nodes.m.output }}" },
        },
      },
      adapters: [httpNode({ allow: [server.host] })],
    });
    const runId = await service.trigger("w");
    expect(await service.ended("w", runId)).toMatchObject({
      status: "failed",
      error: { code: "loop_exhausted", nodeId: "m[0].poll" },
    });
    const again = await resumed(service, runId);
    expect(again).toMatchObject({ status: "failed", error: { code: "loop_exhausted" } });
    expect(server.asked()).toBe(6);
    ready = true;
    expect(await resumed(service, again.runId)).toMatchObject({ status: "completed", finalOutputs: { m: ["yes"] } });
    expect(server.asked()).toBe(7);
  });

  it("a failed run goes on at the node that failed, and a chain of resumes keeps all finished results", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: {
            a: { type: "scripted", with: { say: "a" } },
            b: { type: "scripted", needs: ["a"], with: { fails: 1, say: "b" } },
          },
        },
      },
    });
    let runId = await service.trigger("w");
    await service.ended("w", runId);
    for (let again = 0; again < 2; again++) runId = (await resumed(service, runId)).runId;
    expect(service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["a", "b", "b", "b"]);
    const last = await resumed(service, runId, { as: "done", output: null });
    expect(last).toMatchObject({ status: "completed", nodeResults: { a: { reused: true, outputs: "a" } } });
  });

  it("a cancelled run is resumed if it resumes another: the older run names it, and no finished node of both is repeated", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: {
            a: { type: "scripted", with: { say: "a" } },
            f: { type: "fail", needs: ["a"], with: { message: "no" } },
            b: { type: "scripted", needs: ["f"], with: { say: "b" } },
            hold: { type: "human_gate", needs: ["b"], with: { title: "Go on?" } },
          },
        },
      },
    });
    const cancel = async (runId: string) => {
      const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
      expect((await service.call("POST", `/api/workflow/w/runs/${runId}/cancel`, undefined, { headers })).status).toBe(200);
      return service.ended("w", runId);
    };
    const waiting = async (runId: string) => service.until("w", runId, ({ status }) => status === "waiting_human");
    const first = await service.trigger("w");
    await service.ended("w", first);
    const second = (await resume(service, first, { as: "done" })).body.runId;
    await waiting(second);
    expect(await cancel(second)).toMatchObject({ status: "cancelled", resumable: true });
    const older = await resume(service, first, { idempotencyKey: "other" });
    expect([older.status, older.body.code, older.body.details]).toEqual([409, "run_resumed", { runId: second }]);
    const third = (await resume(service, second)).body.runId;
    await waiting(third);
    expect((await resume(service, second, { idempotencyKey: "other" })).body.code).toBe("run_resumed");
    expect(service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["a", "b"]);
    await cancel(third);
    expect((await resume(service, third)).status).toBe(200);
  });

  it("a cancelled run that resumes no run is not resumed", async () => {
    await using service = await startWorkflowService({
      definitions: { "w.json": { nodes: { hold: { type: "human_gate", with: { title: "Go on?" } } } } },
    });
    const runId = await service.trigger("w");
    await service.until("w", runId, ({ status }) => status === "waiting_human");
    const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
    await service.call("POST", `/api/workflow/w/runs/${runId}/cancel`, undefined, { headers });
    expect(await service.ended("w", runId)).not.toHaveProperty("resumable");
    expect((await resume(service, runId)).body.code).toBe("run_not_resumable");
  });

  it("a gate that was decided is not decided again; a rejection that failed the run is", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: {
            one: { type: "human_gate", with: { title: "One?" } },
            two: { type: "human_gate", needs: ["one"], with: { title: "Two?" } },
          },
          outputs: { by: "${{ nodes.one.output.comment }}" },
        },
      },
    });
    const decide = async (runId: string, body: object) => {
      const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
      expect((await service.call("POST", `/api/workflow/w/runs/${runId}/gate`, body, { headers })).status).toBe(200);
    };
    const waiting = (runId: string, nodeId: string) => service.until("w", runId, ({ humanGate }) => humanGate?.nodeId === nodeId);
    const runId = await service.trigger("w");
    await waiting(runId, "one");
    await decide(runId, { decision: "approve", comment: "ada" });
    await waiting(runId, "two");
    await decide(runId, { decision: "reject" });
    expect((await service.ended("w", runId)).error.code).toBe("rejected");
    const { body } = await resume(service, runId);
    await waiting(body.runId, "two");
    await decide(body.runId, { decision: "approve" });
    expect(await service.ended("w", body.runId)).toMatchObject({ status: "completed", finalOutputs: { by: "ada" } });
  });

  it("a run of a `workflow` node is resumed with the run that started it", async () => {
    const child = {
      nodes: { x: { type: "scripted", with: { say: "x" } }, y: { type: "scripted", needs: ["x"], with: held } },
      outputs: { y: "${{ nodes.x.output + nodes.y.output }}" },
    };
    const definition = { nodes: { s: { type: "workflow", with: { workflow: "c" } } }, outputs: { s: "${{ nodes.s.output.y }}" } };
    const definitions = { "w.json": definition, "c.json": child };
    const first = await startWorkflowService({ definitions });
    const runId = await first.trigger("w");
    await expect.poll(() => first.nodes.played.length).toBe(2);
    const nodes = createScriptedNodes();
    nodes.gate("held").open();
    await using service = await startWorkflowService({ dataDir: first.dataDir, nodes });
    expect((await service.ended("w", runId)).error.code).toBe("workflow_interrupted");
    expect(await resumed(service, runId)).toMatchObject({ status: "completed", finalOutputs: { s: "xheld" } });
    expect(nodes.played.map(({ nodeId }) => nodeId)).toEqual(["y"]);
    const [{ runId: childId }] = (await service.call("GET", "/api/workflow/c/runs")).body.runs.slice(-1);
    expect((await resume(service, childId, {}, { workflowId: "c" })).status).toBe(403);
    await first.close().catch(() => {});
  });

  it("the last run of a retried `workflow` node is resumed, and a retry of the new run begins anew", async () => {
    const child = {
      nodes: { x: { type: "scripted", with: { say: "x" } }, y: { type: "scripted", needs: ["x"], with: { fails: 9, say: "y" } } },
    };
    const s = { type: "workflow", with: { workflow: "c" }, retry: { attempts: 3, delay: "1ms" } };
    await using service = await startWorkflowService({ definitions: { "w.json": { nodes: { s } }, "c.json": child } });
    const runId = await service.trigger("w");
    const lastChild = async (id: string) => /^Run (\S+) /.exec((await service.ended("w", id)).error.message)![1]!;
    const last = await lastChild(runId);
    const before = new Set((await childRuns()).map((run) => run.runId));
    expect(before.size).toBe(3);
    const newer = (await resume(service, runId)).body.runId;
    const lastOfNewer = await lastChild(newer);
    const added = (await childRuns()).filter((run) => !before.has(run.runId));
    const resumes = await Promise.all(added.map(async (run) => (await service.detail("c", run.runId)).resumes));
    expect(resumes.filter((id) => id !== undefined)).toEqual([last]);
    expect(resumes).toHaveLength(3);
    expect((await service.detail("c", lastOfNewer)).resumes).toBeUndefined();
    // Three in the first run, and two in the retries of the second.
    expect(service.nodes.played.filter(({ say }) => say === "x")).toHaveLength(5);

    async function childRuns(): Promise<any[]> {
      return (await service.call("GET", "/api/workflow/c/runs")).body.runs;
    }
  });

  it("the results before a run of a `workflow` node are not lost if that run is cancelled before it has taken them over", async () => {
    const child = {
      nodes: {
        x: { type: "scripted", with: { say: "x" } },
        y: { type: "fail", needs: ["x"], if: "parameters.fails", with: { message: "no" } },
      },
    };
    const s = { type: "workflow", with: { workflow: "c", parameters: { fails: true } } };
    await using service = await startWorkflowService({ definitions: { "w.json": { nodes: { s } }, "c.json": child } });
    const newest = async (): Promise<any> => (await service.call("GET", "/api/workflow/c/runs")).body.runs[0];
    const cancel = async (workflowId: string, runId: string) => {
      const headers = { "x-execution-grant": await service.grant({ workflowId }) };
      await service.call("POST", `/api/workflow/${workflowId}/runs/${runId}/cancel`, undefined, { headers });
    };
    const first = await service.trigger("w");
    await service.ended("w", first);
    const oldest = await newest();
    const reading = createGate();
    const letGo = createGate();
    const spies = service.apps.map(({ port }) => {
      const log = port(ports.log);
      const read = log.read.bind(log);
      return vi
        .spyOn(log, "read")
        .mockImplementation((stream, options) => (stream.includes(oldest.runId) ? held() : read(stream, options)));
    });
    const second = (await resume(service, first)).body.runId;
    await reading.opened;
    const { runId: between } = await newest();
    await cancel("w", second);
    expect((await service.ended("w", second)).status).toBe("cancelled");
    // The process that executes the run hears of the cancellation before the reading ends, also if another process accepted it.
    await Promise.all(service.apps.map(({ port }) => port(ports.engine).cancel(between, "The test cancels it in each process")));
    letGo.open();
    expect((await service.ended("c", between)).status).toBe("cancelled");
    for (const spy of spies) spy.mockRestore();
    const third = (await resume(service, second)).body.runId;
    await service.ended("w", third);
    expect((await service.detail("c", (await newest()).runId)).resumes).toBe(between);
    expect(service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["x"]);

    function held(): AsyncIterable<ports.LogEntry> {
      const next = async () => {
        reading.open();
        await letGo.opened;
        throw new Error("The reading was held until its run was cancelled");
      };
      return { [Symbol.asyncIterator]: () => ({ next }) };
    }
  });

  it("uses the definition that the run started with, also if the file has changed or is gone", async () => {
    await using run = await interrupted(chain);
    run.service.deploy("w.json", { nodes: { other: { type: "transform", with: { value: 1 } } } });
    await expect.poll(async () => (await run.service.call("GET", "/api/workflow/w/definition")).body.nodes[0].id).toBe("other");
    expect(await resumed(run.service, run.runId)).toMatchObject({ finalOutputs: { c: "onceheld" } });
  });

  it("a node that finished before a kill is not repeated, also if history did not have it yet and the run did not reach it again", async () => {
    const leaseMs = 15_000;
    const definition = {
      nodes: {
        a: { type: "scripted", with: { say: "a" } },
        c: { type: "scripted", needs: ["a"], with: { say: "c" } },
        d: { type: "repeatable", needs: ["c"], with: { say: "d", gate: "held" } },
        b: { type: "scripted", with: held },
      },
    };
    const definitions = { "w.json": definition };
    const first = await startWorkflowService({ definitions, clock: createManualClock(), engine: { owner: "one", leaseMs } });
    const runId = await first.trigger("w");
    await expect.poll(() => first.nodes.played.length).toBe(4);
    const clock = createManualClock();
    const nodes = createScriptedNodes();
    nodes.gate("held").open();
    const engine = { owner: "two", leaseMs };
    const service = await startWorkflowService({ dataDir: first.dataDir, clock, engine, nodes });
    await service.app.port(ports.log).remove(`workflow-run:${runId}`);
    await clock.advance(leaseMs + 1);
    const detail = await service.ended("w", runId);
    expect(detail).toMatchObject({ status: "interrupted", nodeResults: { c: { status: "completed", outputs: "c" } } });
    expect((await resumed(service, runId)).status).toBe("completed");
    expect(nodes.played.map(({ nodeId }) => nodeId).sort()).toEqual(["b", "d"]);
    await service.close();
    await first.close().catch(() => {});
  });
});

describe("secrets of a resumed run", () => {
  const SECRET = "a-secret-of-the-configuration";
  const runtime = { secrets: { KEY: new Secret(SECRET) } };

  it("sensitive outputs and secrets reach the nodes, and are neither shown nor stored in plain form", async () => {
    const definition = {
      parameters: { type: "object" },
      nodes: {
        a: { type: "scripted", sensitive: ["token"], with: { say: { token: "t0ken-of-the-node", key: "${{ secrets.KEY }}" } } },
        b: { type: "scripted", needs: ["a"], with: held },
        c: {
          type: "scripted",
          needs: ["b"],
          with: { say: "${{ nodes.a.output.token + ' ' + nodes.a.output.key + ' ' + parameters.p }}" },
        },
      },
    };
    await using run = await interrupted(definition, { runtime, parameters: { p: `p ${SECRET}` } });
    expect(run.detail.parameters).toEqual({ p: "p ***" });
    const detail = await resumed(run.service, run.runId);
    expect(run.service.nodes.played.at(-1)!.say).toBe(`t0ken-of-the-node ${SECRET} p ${SECRET}`);
    expect(detail).toMatchObject({ status: "completed", parameters: { p: "p ***" } });
    expect(detail.nodeResults.a.outputs).toEqual({ token: "***", key: "***" });
    const log = run.service.app.port(ports.log);
    for (const id of [run.runId, detail.runId]) {
      const stored = JSON.stringify(await Array.fromAsync(log.read(`workflow-run:${id}`)));
      expect(stored).toContain('"sealed"');
      expect(stored).not.toContain("t0ken-of-the-node");
      expect(stored).not.toContain(SECRET);
    }
  });

  it("names that contain secrets, and sensitive places beneath them, reach the nodes", async () => {
    const say = { [`is ${SECRET}`]: { token: "t0ken-of-the-node" }, list: [{ token: "another-t0ken" }], plain: 1 };
    const definition = {
      nodes: {
        a: { type: "scripted", sensitive: ["*.token", "list.*.token"], with: { say: "${{ parameters.say }}" } },
        b: { type: "scripted", needs: ["a"], with: held },
        c: { type: "scripted", needs: ["b"], with: { say: "${{ nodes.a.output }}" } },
      },
    };
    await using run = await interrupted(definition, { runtime, parameters: { say } });
    expect(JSON.stringify(run.detail)).not.toMatch(/t0ken|a-secret/);
    expect((await resumed(run.service, run.runId)).status).toBe("completed");
    expect(run.service.nodes.played.at(-1)!.say).toEqual(say);
  });

  it("a rotated secret has its new value in kept results", async () => {
    const definition = {
      nodes: {
        a: { type: "scripted", with: { say: "${{ secrets.KEY }}" } },
        b: { type: "scripted", needs: ["a"], with: held },
        c: { type: "scripted", needs: ["b"], with: { say: "${{ nodes.a.output }}" } },
      },
    };
    await using run = await interrupted(definition, { runtime });
    await run.service.close();
    const nodes = createScriptedNodes();
    nodes.gate("held").open();
    const rotated = { secrets: { KEY: new Secret("its-new-value") } };
    await using service = await startWorkflowService({ dataDir: run.first.dataDir, nodes, runtime: rotated });
    expect((await resumed(service, run.runId)).status).toBe("completed");
    expect(nodes.played.at(-1)!.say).toBe("its-new-value");
  });
});

describe("who may resume what", () => {
  it("the same idempotencyKey gets the same run, also at once; another key gets 409 run_resumed", async () => {
    await using run = await interrupted(chain);
    const answers = await Promise.all([1, 2, 3].map(() => resume(run.service, run.runId)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(new Set(answers.map(({ body }) => body.runId)).size).toBe(1);
    expect(answers.filter(({ body }) => body.duplicate)).toHaveLength(2);
    const other = await resume(run.service, run.runId, { idempotencyKey: "other" });
    expect([other.status, other.body.code, other.body.details]).toEqual([409, "run_resumed", { runId: answers[0]!.body.runId }]);
    await run.service.ended("w", answers[0]!.body.runId);
    expect(run.service.nodes.played.map(({ nodeId }) => nodeId)).toEqual(["b", "c"]);
  });

  it("needs a grant of the run's user, or one that names no user, if the run has a user; any grant resumes a run without a user", async () => {
    await using service = await startWorkflowService({
      definitions: { "w.json": { nodes: { a: { type: "fail", with: { message: "x" } } } } },
    });
    const executionGrantId = await service.grant({ workflowId: "w", userId: "ada" });
    const { runId } = (
      await service.call("POST", "/api/workflow/run", { executionGrantId, workflowId: "w", idempotencyKey: "k" })
    ).body;
    await service.ended("w", runId);
    expect((await resume(service, runId, {}, { userId: "eve" })).status).toBe(403);
    expect((await resume(service, runId, {}, { userId: "ada" })).status).toBe(200);
    const own = await service.trigger("w");
    await service.ended("w", own);
    expect((await resume(service, own, {}, { userId: "eve" })).status).toBe(200);
  });

  it("needs a grant of the workflow", async () => {
    await using run = await interrupted(chain);
    const path = `/api/workflow/w/runs/${run.runId}/resume`;
    expect((await run.service.call("POST", path, { idempotencyKey: "k" })).status).toBe(403);
    const answer = await resume(run.service, run.runId, {}, { workflowId: "x" });
    expect([answer.status, answer.body.code]).toEqual([403, "execution_grant_invalid"]);
  });

  it("sends the idempotency keys of the first run", async () => {
    const keys: unknown[] = [];
    const server = createServer((request, response) => {
      keys.push(request.headers["idempotency-key"]);
      response.writeHead(keys.length < 3 ? 404 : 200).end("{}");
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const call = { type: "http", with: { method: "POST", url: `http://${host}`, key: true } };
    await using service = await startWorkflowService({
      definitions: { "w.json": { nodes: { call } } },
      adapters: [httpNode({ allow: [host] })],
    });
    const runId = await service.trigger("w");
    await service.ended("w", runId);
    const second = await resumed(service, runId);
    expect((await resumed(service, second.runId)).status).toBe("completed");
    expect(keys).toEqual([`${runId}:call:1`, `${runId}:call:1`, `${runId}:call:1`]);
    server.close();
  });

  it("refuses runs that completed or were cancelled, unknown nodes, and an output without `as: done`", async () => {
    await using run = await interrupted(chain);
    expect((await resume(run.service, run.runId, { output: 1 })).status).toBe(400);
    for (const body of [{ from: "nothing" }, { from: "a", as: "done" }, { from: "c", as: "done" }]) {
      const answer = await resume(run.service, run.runId, body);
      expect([answer.status, answer.body.code]).toEqual([409, "run_not_resumable"]);
    }
    const done = await resumed(run.service, run.runId);
    expect((await resume(run.service, done.runId)).body.code).toBe("run_not_resumable");
  });
});

describe("running again (rerun)", () => {
  const definition = {
    parameters: { type: "object", properties: { a: { type: "integer" }, key: { type: "string" } } },
    nodes: { x: { type: "scripted", with: { say: "${{ parameters }}" } } },
  };

  it("starts the deployed workflow with the parameters of the run; given ones replace them; the grant starts once", async () => {
    const runtime = { secrets: { KEY: new Secret("a-secret-of-the-configuration") } };
    await using service = await startWorkflowService({ definitions: { "w.json": definition }, runtime });
    const parameters = { a: 1, key: "a-secret-of-the-configuration" };
    const runId = await service.trigger("w", parameters);
    const { parameters: shown } = await service.ended("w", runId);
    expect(shown).toEqual({ a: 1, key: "***" });
    const headers = { "x-execution-grant": await service.grant({ workflowId: "w", userId: "ada" }) };
    const rerun = (idempotencyKey: string, more: object = {}) =>
      service.call("POST", `/api/workflow/w/runs/${runId}/rerun`, { idempotencyKey, ...more }, { headers });
    const { status, body } = await rerun("k", { parameters: { a: 2 } });
    expect([status, body.status]).toEqual([200, "started"]);
    expect(await service.ended("w", body.runId)).toMatchObject({ userId: "ada", parameters: { a: 2, key: "***" } });
    expect(service.nodes.played.map(({ say }) => say)).toEqual([parameters, { ...parameters, a: 2 }]);
    expect((await rerun("k")).body).toMatchObject({ runId: body.runId, duplicate: true });
    expect((await rerun("other")).body.code).toBe("execution_grant_invalid");
  });

  it("needs a grant of the run's user, or one that names no user, if the run has a user", async () => {
    await using service = await startWorkflowService({ definitions: { "w.json": definition } });
    const start = async (userId: string) => ({
      ...{ executionGrantId: await service.grant({ workflowId: "w", userId }), workflowId: "w" },
      ...{ idempotencyKey: "k", parameters: { key: "of ada" } },
    });
    const { runId } = (await service.call("POST", "/api/workflow/run", await start("ada"))).body;
    await service.ended("w", runId);
    const rerun = async (order: { readonly userId?: string }) => {
      const headers = { "x-execution-grant": await service.grant({ workflowId: "w", ...order }) };
      return service.call("POST", `/api/workflow/w/runs/${runId}/rerun`, { idempotencyKey: "k" }, { headers });
    };
    expect(await rerun({ userId: "eve" })).toMatchObject({ status: 403, body: { code: "execution_grant_invalid" } });
    expect(service.nodes.played).toHaveLength(1);
    for (const order of [{ userId: "ada" }, {}]) expect((await rerun(order)).status).toBe(200);
  });

  it("leaves the parameters out that `without` names, unless the call gives them", async () => {
    await using service = await startWorkflowService({ definitions: { "w.json": definition } });
    const runId = await service.trigger("w", { a: 1, key: "old" });
    await service.ended("w", runId);
    for (const [body, parameters] of [
      [{ without: ["key", "unknown"] }, { a: 1 }],
      [{ without: ["a", "key"], parameters: { a: 2 } }, { a: 2 }],
    ] as const) {
      const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
      const path = `/api/workflow/w/runs/${runId}/rerun`;
      const again = await service.call("POST", path, { idempotencyKey: "k", ...body }, { headers });
      expect((await service.ended("w", again.body.runId)).parameters).toEqual(parameters);
    }
  });

  it("checks the parameters again", async () => {
    await using service = await startWorkflowService({ definitions: { "w.json": definition } });
    const runId = await service.trigger("w", { a: 1 });
    await service.ended("w", runId);
    const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
    const body = { idempotencyKey: "k", parameters: { a: "no" } };
    const answer = await service.call("POST", `/api/workflow/w/runs/${runId}/rerun`, body, { headers });
    expect([answer.status, answer.body.code]).toEqual([400, "invalid_parameters"]);
  });
});

/** A server that answers every request with a text. */
async function startAnswers(textOf: () => string) {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked++;
    response.setHeader("content-type", "text/plain").end(textOf());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://${host}`, host, asked: () => asked, [Symbol.asyncDispose]: close };
}
