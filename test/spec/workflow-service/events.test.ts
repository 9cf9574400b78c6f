import { connect } from "node:net";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { startWorkflowService } from "../../harness/workflow-app.ts";

const chain = {
  name: "Chain",
  nodes: {
    a: { name: "First", type: "scripted", with: { say: 1, gate: "a" } },
    b: { type: "transform", needs: ["a"], with: { value: "${{ nodes.a.output + 1 }}" } },
  },
  outputs: { b: "${{ nodes.b.output }}" },
};
const definitions = { "chain.json": chain };

describe("the events of a run (6.1)", () => {
  it("come in order, each with its payload, and end with the outcome", async () => {
    await using service = await startWorkflowService({ definitions });
    const runId = await service.trigger("chain");
    const events = await service.events(runId);
    expect(await events.next()).toEqual({
      event: "workflow:started",
      data: { workflowId: "chain", runId, name: "Chain", nodeCount: 2 },
    });
    expect(await events.next()).toEqual({
      event: "workflow:node_start",
      data: { runId, nodeId: "a", type: "scripted", name: "First" },
    });
    service.nodes.gate("a").open();
    expect(await events.rest()).toEqual([
      {
        event: "workflow:node_complete",
        data: { runId, nodeId: "a", inputs: { say: 1, gate: "a" }, outputs: 1, durationMs: expect.any(Number) },
      },
      { event: "workflow:node_start", data: { runId, nodeId: "b", type: "transform" } },
      {
        event: "workflow:node_complete",
        data: { runId, nodeId: "b", inputs: { value: 2 }, outputs: 2, durationMs: expect.any(Number) },
      },
      { event: "workflow:complete", data: { runId, workflowId: "chain", status: "completed", finalOutputs: { b: 2 } } },
    ]);
  });

  it("say which node failed, and then that the run did", async () => {
    await using service = await startWorkflowService({
      definitions: { "w.json": { nodes: { a: { type: "scripted", with: { gate: "a", fails: 1 } } } } },
    });
    const runId = await service.trigger("w");
    const events = await service.events(runId);
    service.nodes.gate("a").open();
    const error = { code: "scripted", message: "attempt 1 fails" };
    expect((await events.rest()).slice(2)).toEqual([
      { event: "workflow:node_error", data: { runId, nodeId: "a", error } },
      { event: "workflow:error", data: { runId, error, nodeId: "a" } },
      { event: "workflow:complete", data: { runId, workflowId: "w", status: "failed" } },
    ]);
  });

  it("a gate has an event, which is not a completion or an approval", async () => {
    await using service = await startWorkflowService({
      definitions: { "w.json": { nodes: { ok: { type: "human_gate", with: { title: "Go on?", message: "Sure?" } } } } },
    });
    const runId = await service.trigger("w");
    const events = await service.events(runId);
    await events.next();
    await events.next();
    expect(await events.next()).toEqual({
      event: "workflow:human_gate",
      data: { runId, nodeId: "ok", title: "Go on?", message: "Sure?", requestedAt: expect.any(String) },
    });
    const headers = { "x-execution-grant": await service.grant({ workflowId: "w" }) };
    await service.call("POST", `/api/workflow/w/runs/${runId}/gate`, { decision: "approve" }, { headers });
    expect((await events.rest()).map(({ event }) => event)).toEqual(["workflow:node_complete", "workflow:complete"]);
  });

  it("a subscriber that comes while the run is under way first gets the events so far", async () => {
    await using service = await startWorkflowService({
      definitions: {
        "w.json": {
          nodes: { a: { type: "transform", with: { value: 1 } }, b: { type: "scripted", needs: ["a"], with: { gate: "b" } } },
        },
      },
    });
    const runId = await service.trigger("w");
    await expect.poll(() => service.nodes.played.length).toBe(1);
    const events = await service.events(runId);
    service.nodes.gate("b").open();
    const names = (await events.rest()).map(({ event, data }) => [event, data.nodeId]);
    expect(names).toEqual([
      ["workflow:started", undefined],
      ["workflow:node_start", "a"],
      ["workflow:node_complete", "a"],
      ["workflow:node_start", "b"],
      ["workflow:node_complete", "b"],
      ["workflow:complete", undefined],
    ]);
  });

  it("of a run that ended in this process are a single workflow:complete", async () => {
    await using service = await startWorkflowService({ definitions });
    service.nodes.gate("a").open();
    const runId = await service.trigger("chain");
    await service.ended("chain", runId);
    for (let time = 0; time < 2; time++) {
      const events = await (await service.events(runId)).rest();
      expect(events).toEqual([
        { event: "workflow:complete", data: { runId, workflowId: "chain", status: "completed", finalOutputs: { b: 2 } } },
      ]);
    }
  });

  it("of a run that has already failed are only its end", async () => {
    await using service = await startWorkflowService({
      definitions: { "w.json": { nodes: { a: { type: "scripted", with: { fails: 1 } } } } },
    });
    const runId = await service.trigger("w");
    await service.ended("w", runId);
    expect(await (await service.events(runId)).rest()).toEqual([
      { event: "workflow:complete", data: { runId, workflowId: "w", status: "failed" } },
    ]);
  });

  it("do not exist after a restart: 404, and the history has the run", async () => {
    const first = await startWorkflowService({ definitions });
    first.nodes.gate("a").open();
    const runId = await first.trigger("chain");
    await first.ended("chain", runId);
    const waits = await startWorkflowService({ dataDir: first.dataDir });
    // In a cluster, the others notice after seconds that a process was killed.
    const status = () => waits.events(runId).then((subscription) => subscription.leave(), String);
    await expect.poll(status).toContain("404");
    const answer = await waits.call("GET", `/api/workflow/events?runId=${runId}`);
    expect([answer.status, answer.body.error]).toEqual([404, "Run not found"]);
    expect((await waits.detail("chain", runId)).finalOutputs).toEqual({ b: 2 });
    await waits.close();
    await first.close().catch(() => {});
  });

  it.each([
    ["without a runId", "", 400, "runId is required"],
    ["with an empty one", "?runId=", 400, "runId is required"],
    ["with two", "?runId=a&runId=b", 400, "runId is required"],
    ["of no run", "?runId=wrun_none", 404, "Run not found"],
  ])("%s there are none", async (_how, query, status, error) => {
    await using service = await startWorkflowService();
    const answer = await service.call("GET", `/api/workflow/events${query}`);
    expect([answer.status, answer.body.error]).toEqual([status, error]);
  });

  it("go to one subscriber: if a second one connects, the first stream ends", async () => {
    await using service = await startWorkflowService({ definitions });
    const runId = await service.trigger("chain");
    const first = await service.events(runId);
    expect((await first.next())?.event).toBe("workflow:started");
    expect((await first.next())?.event).toBe("workflow:node_start");
    const second = await service.events(runId);
    expect(await first.next()).toBeUndefined();
    service.nodes.gate("a").open();
    const events = await second.rest();
    expect(events[0]?.event).toBe("workflow:started");
    expect(events.at(-1)?.event).toBe("workflow:complete");
  });

  it("are text/event-stream, and their head comes before the first event", async () => {
    await using service = await startWorkflowService({ definitions });
    const runId = await service.trigger("chain");
    const answer = await fetch(`${service.url}/api/workflow/events?runId=${runId}`, {
      headers: { "x-workflow-service-token": "workflow-token-0123456789" },
    });
    expect(answer.headers.get("content-type")).toMatch(/^text\/event-stream/);
    await answer.body?.cancel();
  });

  it("a reader that does not read delays no run and uses no memory, and gets every event later", async () => {
    const text = "x".repeat(20_000);
    const many = {
      nodes: {
        all: {
          type: "map",
          with: {
            items: "${{ parameters.list }}",
            nodes: { a: { type: "transform", with: { value: { item: "${{ item }}", text } } } },
            result: "${{ item }}",
          },
        },
      },
    };
    await using service = await startWorkflowService({ definitions: { "many.json": many } });
    const list = Array.from({ length: 300 }, (_, at) => at);
    const runId = await service.trigger("many", { list });
    const { port } = new URL(service.url);
    const socket = connect(Number(port), "127.0.0.1");
    socket.pause();
    socket.write(
      `GET /api/workflow/events?runId=${runId} HTTP/1.1\r\nhost: x\r\nx-workflow-service-token: workflow-token-0123456789\r\nconnection: close\r\n\r\n`,
    );
    await once(socket, "connect");
    for (;;) {
      const { body } = await service.call("GET", "/api/workflow/many/runs");
      if (body.runs[0].status === "completed") break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    let received = "";
    socket.on("data", (chunk) => (received += chunk.toString("latin1")));
    socket.resume();
    await once(socket, "end");
    // The lengths of chunks can stand within a name.
    received = received.replaceAll(/\r\n[0-9a-f]+\r\n/g, "");
    expect(received.match(/event: workflow:node_complete/g)).toHaveLength(301);
    expect(received.match(/event: workflow:complete/g)).toHaveLength(1);
  });
});
