import { createManualClock } from "@portico/adapters/clock/manual";
import { httpNode } from "@portico/workflow-nodes/http";
import { Secret } from "@portico/core";
import { describe, expect, it } from "vitest";
import { type HookServer, startHookServer } from "../../harness/hook-server.ts";
import { startWorkflowService, type WorkflowService, type WorkflowServiceOptions } from "../../harness/workflow-app.ts";

const KEY = "hook-key-0123456789";

function gated({ url }: Pick<HookServer, "url">, more: object = {}, gate: object = {}): object {
  return {
    parameters: { type: "object", properties: { what: { type: "string", default: "it" } } },
    nodes: {
      ok: {
        type: "human_gate",
        with: {
          ...{ title: "Publish?", message: "About ${{ parameters.what }}" },
          notify: {
            url,
            headers: { authorization: "Bearer ${{ secrets.HOOK }}" },
            body: { text: "${{ gate.title }}: ${{ gate.message }}", run: "${{ gate.runId }}", node: "${{ gate.nodeId }}" },
            ...more,
          },
          ...gate,
        },
      },
    },
    outputs: { decision: "${{ nodes.ok.output.decision }}" },
  };
}

function start(hook: HookServer, definition: object, options: WorkflowServiceOptions = {}): Promise<WorkflowService> {
  return startWorkflowService({
    definitions: { "gated.json": definition },
    adapters: [httpNode({ allow: [hook.host] })],
    runtime: { secrets: { HOOK: new Secret(KEY) } },
    ...options,
  });
}

const isTold = ({ humanGate }: any) => humanGate?.notification !== undefined;

async function decide(service: WorkflowService, runId: string, body: object = { decision: "approve" }) {
  const headers = { "x-execution-grant": await service.grant({ workflowId: "gated" }) };
  return service.call("POST", `/api/workflow/gated/runs/${runId}/gate`, body, { headers });
}

describe("a gate with `notify`", () => {
  it("sends its filled body once, with its headers and an idempotency key, and then says so", async () => {
    await using hook = await startHookServer();
    await using service = await start(hook, gated(hook));
    const runId = await service.trigger("gated", { what: "the lift" });
    const detail = await service.until("gated", runId, isTold);
    expect(detail.humanGate).toMatchObject({ nodeId: "ok", notification: { status: "sent" } });
    expect(detail.status).toBe("waiting_human");
    expect(hook.received).toMatchObject([
      {
        ...{ method: "POST", path: "/hook" },
        headers: { authorization: `Bearer ${KEY}`, "idempotency-key": `${runId}:ok`, "content-type": "application/json" },
        body: { text: "Publish?: About the lift", run: runId, node: "ok" },
      },
    ]);
    expect((await decide(service, runId)).status).toBe(200);
    expect(await service.ended("gated", runId)).toMatchObject({ status: "completed", finalOutputs: { decision: "approve" } });
    expect(hook.received).toHaveLength(1);
  });

  it("sends all facts of the gate where the definition says no body", async () => {
    await using hook = await startHookServer();
    await using service = await start(hook, gated(hook, { body: undefined, method: "PUT" }, { timeout: "1h" }));
    const runId = await service.trigger("gated", { what: "this" });
    const { humanGate } = await service.until("gated", runId, isTold);
    expect(hook.received[0]).toMatchObject({ method: "PUT" });
    expect(hook.received[0]!.body).toEqual({
      ...{ workflowId: "gated", runId, nodeId: "ok", title: "Publish?", message: "About this" },
      ...{ requestedAt: humanGate.requestedAt, expiresAt: humanGate.expiresAt },
    });
  });

  it("tries again with the same idempotency key until it is delivered", async () => {
    await using hook = await startHookServer();
    hook.status = 503;
    const clock = createManualClock();
    await using service = await start(hook, gated(hook), { clock });
    const runId = await service.trigger("gated");
    await expect.poll(() => hook.received.length).toBe(1);
    hook.status = 202;
    await expect
      .poll(async () => {
        await clock.advance(1000);
        return isTold(await service.detail("gated", runId));
      })
      .toBe(true);
    expect((await service.detail("gated", runId)).humanGate.notification).toEqual({ status: "sent" });
    expect(hook.received.map(({ headers }) => headers["idempotency-key"])).toEqual([`${runId}:ok`, `${runId}:ok`]);
  });

  it("keeps waiting when it cannot be delivered; the detail, the events and the log say why, without what was sent", async () => {
    await using hook = await startHookServer();
    hook.status = 400;
    await using service = await start(hook, gated(hook));
    const runId = await service.trigger("gated", { what: "a private thing" });
    const events = await service.events(runId);
    const { humanGate, status } = await service.until("gated", runId, isTold);
    expect(status).toBe("waiting_human");
    expect(humanGate.notification).toEqual({ status: "failed", error: { code: "http_status", message: expect.any(String) } });
    expect((await decide(service, runId)).status).toBe(200);
    const told = await events.rest();
    expect(told.find(({ event }) => event === "workflow:gate_notification")?.data).toEqual({
      ...{ runId, nodeId: "ok" },
      ...humanGate.notification,
    });
    expect(told.at(-1)!.data).toMatchObject({ status: "completed" });
    const lines = service.telemetry.lines.filter(({ message }) => message.includes("notification"));
    expect(lines).toMatchObject([{ level: "warn", fields: { runId, nodeId: "ok", code: "http_status" } }]);
    expect(JSON.stringify([service.telemetry.lines, told])).not.toContain(KEY);
    expect(JSON.stringify(service.telemetry.lines)).not.toContain("private");
  });

  it("keeps waiting when its body cannot be evaluated", async () => {
    await using hook = await startHookServer();
    await using service = await start(hook, gated(hook, { body: { text: "${{ gate.nothing }}" } }));
    const refused = (await service.call("GET", "/api/workflows")).body.broken;
    expect(refused[0].problems[0].message).toContain('There is no field of `gate` "nothing"');
    service.deploy("gated.json", gated(hook, { body: { text: "${{ parameters.absent }}" } }));
    await expect.poll(async () => (await service.call("GET", "/api/workflows")).body.workflows.length).toBe(1);
    const runId = await service.trigger("gated");
    const { humanGate } = await service.until("gated", runId, isTold);
    expect(humanGate.notification).toMatchObject({ status: "failed", error: { code: "expression_failed" } });
    expect((await decide(service, runId)).status).toBe(200);
    expect(hook.received).toEqual([]);
  });

  it("is decided while its notification gets no answer, and stops sending it then", async () => {
    await using hook = await startHookServer();
    hook.status = undefined;
    await using service = await start(hook, gated(hook));
    const runId = await service.trigger("gated");
    await expect.poll(() => hook.received.length).toBe(1);
    expect((await decide(service, runId)).status).toBe(200);
    expect(await service.ended("gated", runId)).toMatchObject({ status: "completed" });
  });

  it("sends nothing twice when another process takes the run over after the notification", async () => {
    await using hook = await startHookServer();
    const first = await start(hook, gated(hook));
    const runId = await first.trigger("gated");
    await first.until("gated", runId, isTold);
    await using second = await start(hook, gated(hook), { dataDir: first.dataDir });
    const detail = await second.until("gated", runId, ({ status }) => status === "waiting_human");
    expect(detail.humanGate.notification).toEqual({ status: "sent" });
    expect((await decide(second, runId)).status).toBe(200);
    expect(await second.ended("gated", runId)).toMatchObject({ status: "completed" });
    await first.close().catch(() => {});
    expect(hook.received).toHaveLength(1);
  });

  it("sends the same key again when a process ended while it sent", async () => {
    await using hook = await startHookServer();
    hook.status = undefined;
    const first = await start(hook, gated(hook));
    const runId = await first.trigger("gated");
    await expect.poll(() => hook.received.length).toBe(1);
    hook.status = 204;
    await using second = await start(hook, gated(hook), { dataDir: first.dataDir });
    await second.until("gated", runId, isTold);
    await first.close().catch(() => {});
    const keys = hook.received.map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toEqual([`${runId}:ok`, `${runId}:ok`]);
  });

  it.each([
    ["an address that workflows may not reach", { url: "http://10.0.0.1/hook" }, "may not reach"],
    ["a header of the connection", { headers: { host: "a" } }, "belongs to the connection"],
    ["the gate in its address", { url: "https://hooks.example/${{ gate.runId }}" }, "`gate` is known in the `body`"],
    ["a link without `links`", { body: "${{ gate.link }}" }, "`gate.link` needs `links: true`"],
    ["an unknown key", { token: "x" }, 'There is no key "token"'],
  ])("is refused with %s", async (_what, more, message) => {
    await using hook = await startHookServer();
    await using service = await start(hook, gated(hook, more));
    const { broken } = (await service.call("GET", "/api/workflows")).body;
    expect(broken[0].problems[0].message).toContain(message);
  });

  it("is refused in an instance without http nodes", async () => {
    await using service = await startWorkflowService({ definitions: { "gated.json": gated({ url: "https://hooks.example/" }) } });
    const { broken } = (await service.call("GET", "/api/workflows")).body;
    const messages = broken[0].problems.map(({ message }: { message: string }) => message);
    expect(messages).toContainEqual(expect.stringContaining("This instance has no nodes of type http"));
  });
});
