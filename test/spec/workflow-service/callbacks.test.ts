import { recordAudit } from "@portico/adapters/audit/records";
import { createManualClock } from "@portico/adapters/clock/manual";
import { httpNode } from "@portico/workflow-nodes/http";
import { ports, Secret } from "@portico/core";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import { describe, expect, it } from "vitest";
import { addressIn, paid, sendEvent, startPaid, waitingCallback } from "../../harness/callback-run.ts";
import { startHookServer } from "../../harness/hook-server.ts";
import { startWorkflowService } from "../../harness/workflow-app.ts";

describe("a callback node", () => {
  it("sends its address, and completes with the event that is sent there without a token of the service", async () => {
    await using hook = await startHookServer();
    await using service = await startPaid(hook);
    const { runId, path, until } = await waitingCallback(service, hook);
    expect(hook.received[0]!.headers["idempotency-key"]).toBe(`${runId}:pay:1`);
    const { nodeResults } = await service.until("paid", runId, (run) => run.nodeResults.pay?.status === "waiting");
    expect(nodeResults.pay).toMatchObject({ type: "callback", attempts: 1, waitsUntil: until });
    const answer = await sendEvent(service, path, { amount: 3, id: "evt_1" });
    expect([answer.status, answer.body]).toEqual([200, { accepted: true }]);
    const ended = await service.ended("paid", runId);
    expect(ended).toMatchObject({ status: "completed", finalOutputs: { event: { amount: 3, id: "evt_1" } } });
    expect(ended.nodeResults.pay).not.toHaveProperty("waitsUntil");
    expect(hook.received).toHaveLength(1);
  });

  it("takes any JSON, and an empty body as null", async () => {
    await using hook = await startHookServer();
    await using service = await startPaid(hook);
    for (const [sent, event] of [
      [
        [1, 2],
        [1, 2],
      ],
      ["", null],
      ["12345678901234567890", "12345678901234567890"],
    ]) {
      const { runId, path } = await waitingCallback(service, hook);
      expect((await sendEvent(service, path, sent)).status).toBe(200);
      expect((await service.ended("paid", runId)).finalOutputs).toEqual({ event });
    }
  });

  it("tells followers that it waits, and until when", async () => {
    await using hook = await startHookServer();
    await using service = await startPaid(hook);
    const { runId, path, until } = await waitingCallback(service, hook);
    const events = await service.events(runId);
    await sendEvent(service, path, {});
    const told = (await events.rest()).find(({ event }) => event === "workflow:callback");
    expect(told?.data).toEqual({ runId, nodeId: "pay", attempt: 1, requestedAt: expect.any(String), expiresAt: until });
  });

  it("takes one event: of several at the same time one is accepted, and the others are 409 or 410", async () => {
    await using hook = await startHookServer();
    await using service = await startPaid(hook);
    const { runId, path } = await waitingCallback(service, hook);
    const answers = await Promise.all([1, 2, 3, 4].map((id) => sendEvent(service, path, { id })));
    const accepted = answers.flatMap(({ status }, at) => (status === 200 ? [at + 1] : []));
    expect(accepted).toHaveLength(1);
    for (const { status, body } of answers)
      expect([undefined, "callback_used", "callback_ended"]).toContain(status === 200 ? undefined : body.code);
    expect((await service.ended("paid", runId)).finalOutputs).toEqual({ event: { id: accepted[0] } });
  });

  it("answers the second event with 409 while the run goes on, and with 410 when the run has ended", async () => {
    await using hook = await startHookServer();
    const definition: any = paid(hook);
    definition.nodes.hold = { type: "repeatable", needs: ["pay"], with: { gate: "hold" } };
    await using service = await startPaid(hook, { definitions: { "paid.json": definition } });
    const { runId, path } = await waitingCallback(service, hook);
    expect((await sendEvent(service, path, { id: 1 })).status).toBe(200);
    const again = await sendEvent(service, path, { id: 1 });
    expect([again.status, again.body.code]).toEqual([409, "callback_used"]);
    service.nodes.gate("hold").open();
    await service.ended("paid", runId);
    const late = await sendEvent(service, path, { id: 1 });
    expect([late.status, late.body.code]).toEqual([410, "callback_ended"]);
  });

  it("checks the event against its schema with the schema's defaults, and waits on after an event that does not match", async () => {
    await using hook = await startHookServer();
    const schema = {
      type: "object",
      required: ["amount"],
      properties: { amount: { type: "integer" }, currency: { type: "string", default: "EUR" } },
    };
    await using service = await startPaid(hook, {}, { schema });
    const { runId, path } = await waitingCallback(service, hook);
    const wrong = await sendEvent(service, path, { amount: "secret-amount" });
    expect([wrong.status, wrong.body.code, wrong.body.details.body[0].path]).toEqual([400, "invalid_callback", "/amount"]);
    expect(wrong.text).not.toContain("secret-amount");
    expect((await sendEvent(service, path, { amount: 5 })).status).toBe(200);
    expect((await service.ended("paid", runId)).finalOutputs).toEqual({ event: { amount: 5, currency: "EUR" } });
  });

  it("refuses bodies that are no JSON, too large or nested too deeply, and other methods", async () => {
    await using hook = await startHookServer();
    await using service = await startPaid(hook);
    const { runId, path } = await waitingCallback(service, hook);
    const deep = `${"[".repeat(600)}${"]".repeat(600)}`;
    expect((await sendEvent(service, path, "{")).body.code).toBe("invalid_json");
    expect((await sendEvent(service, path, deep)).status).toBe(400);
    expect((await sendEvent(service, path, JSON.stringify("x".repeat(1024 * 1024)))).status).toBe(413);
    expect((await sendEvent(service, path, {}, { "content-type": "text/plain" })).status).toBe(415);
    expect((await fetch(service.url + path)).status).toBeGreaterThanOrEqual(404);
    expect((await service.detail("paid", runId)).nodeResults.pay.status).toBe("waiting");
  });

  it("opens its own node alone: a changed or a foreign token is 404, whether the run exists or not", async () => {
    await using hook = await startHookServer();
    await using service = await startPaid(hook);
    const one = await waitingCallback(service, hook);
    const other = await waitingCallback(service, hook);
    const [payload = "", signature = ""] = one.token.split(".");
    const forged = (parts: unknown[]) => `callback_${Buffer.from(JSON.stringify(parts)).toString("base64url")}.${signature}`;
    const tokens = [
      `${other.token.split(".")[0]}.${signature}`,
      forged([one.runId, "pay", 1, 9e15]),
      forged(["wrun_0", "pay", 1, 9e15]),
      one.token.replace("callback_", "approval_"),
      ...[payload, `${payload}.`, "x", `${one.token}.x`, "a".repeat(9000)],
    ];
    for (const [at, token] of tokens.entries()) {
      // Bodies of callers without a token are not parsed.
      const { status, body } = await sendEvent(service, `/callback/${token}`, at % 2 === 0 ? {} : "{");
      expect([status, body]).toEqual([404, { error: "There is no such callback", code: "callback_not_found" }]);
    }
    expect((await sendEvent(service, one.path, {})).status).toBe(200);
    await service.ended("paid", one.runId);
    expect((await service.detail("paid", other.runId)).status).toBe("running");
  });

  it("fails with callback_timeout when no event comes in time, and the address is 410 then", async () => {
    await using hook = await startHookServer();
    const clock = createManualClock();
    const definition: any = paid(hook, { timeout: "1h" }, { onError: "continue" });
    definition.nodes.hold = { type: "repeatable", needs: ["pay"], with: { gate: "hold" } };
    definition.outputs = { code: "${{ nodes.pay.error.code }}" };
    await using service = await startPaid(hook, { clock, definitions: { "paid.json": definition } });
    const { runId, path, until } = await waitingCallback(service, hook);
    expect(Date.parse(until)).toBe(clock.now() + 3_600_000);
    await clock.jump(3_600_000);
    await service.until("paid", runId, ({ nodeResults }) => nodeResults.hold?.status === "running");
    expect((await sendEvent(service, path, {})).body.code).toBe("callback_ended");
    service.nodes.gate("hold").open();
    expect(await service.ended("paid", runId)).toMatchObject({ status: "completed", finalOutputs: { code: "callback_timeout" } });
  });

  it("gives out a new address for each attempt of its `retry`, and the earlier address is 410", async () => {
    await using hook = await startHookServer();
    const clock = createManualClock();
    await using service = await startPaid(hook, { clock }, { timeout: "1h" }, { retry: { attempts: 2, delay: "1s" } });
    const first = await waitingCallback(service, hook);
    await clock.jump(3_600_000);
    await expect
      .poll(async () => {
        await clock.advance(1000);
        return hook.received.length;
      })
      .toBe(2);
    expect(hook.received.map(({ headers }) => headers["idempotency-key"])).toEqual([
      `${first.runId}:pay:1`,
      `${first.runId}:pay:2`,
    ]);
    expect((await sendEvent(service, first.path, { id: 1 })).body.code).toBe("callback_ended");
    expect((await sendEvent(service, addressIn(hook).path, { id: 2 })).status).toBe(200);
    const ended = await service.ended("paid", first.runId);
    expect([ended.finalOutputs, ended.nodeResults.pay.attempts]).toEqual([{ event: { id: 2 } }, 2]);
  });

  it("fails with the error of its request if the request cannot be delivered", async () => {
    await using hook = await startHookServer();
    hook.status = 400;
    await using service = await startPaid(hook);
    const { runId, path } = await waitingCallback(service, hook);
    expect(await service.ended("paid", runId)).toMatchObject({ status: "failed", error: { code: "http_status", nodeId: "pay" } });
    expect((await sendEvent(service, path, {})).body.code).toBe("callback_ended");
  });

  it("takes the event while its request has no answer yet", async () => {
    await using hook = await startHookServer();
    hook.status = undefined;
    await using service = await startPaid(hook);
    const { runId, path } = await waitingCallback(service, hook);
    expect((await sendEvent(service, path, { id: 1 })).status).toBe(200);
    expect((await service.ended("paid", runId)).finalOutputs).toEqual({ event: { id: 1 } });
  });

  it("ends with its run when the run is cancelled", async () => {
    await using hook = await startHookServer();
    await using service = await startPaid(hook);
    const { runId, path } = await waitingCallback(service, hook);
    const headers = { "x-execution-grant": await service.grant({ workflowId: "paid" }) };
    await service.call("POST", `/api/workflow/paid/runs/${runId}/cancel`, undefined, { headers });
    const ended = await service.ended("paid", runId);
    expect([ended.status, ended.nodeResults.pay.status]).toEqual(["cancelled", "cancelled"]);
    expect((await sendEvent(service, path, {})).body.code).toBe("callback_ended");
  });

  it("waits on in another process, which sends nothing again, and takes the event there", async () => {
    await using hook = await startHookServer();
    const first = await startPaid(hook);
    const { runId, path } = await waitingCallback(first, hook);
    await first.until("paid", runId, ({ nodeResults }) => nodeResults.pay?.status === "waiting");
    await using second = await startPaid(hook, { dataDir: first.dataDir });
    expect((await sendEvent(second, path, { id: 1 })).status).toBe(200);
    expect((await second.ended("paid", runId)).finalOutputs).toEqual({ event: { id: 1 } });
    await first.close().catch(() => {});
    expect(hook.received).toHaveLength(1);
  });

  it("wakes its run when the event is repeated, if the process that stored the event died before it could", async () => {
    await using hook = await startHookServer();
    await using service = await startPaid(hook);
    const { runId, path } = await waitingCallback(service, hook);
    await service.until("paid", runId, ({ nodeResults }) => nodeResults.pay?.status === "waiting");
    const { callbacks } = service.app.port(workflowRuntime);
    const event = { body: { id: 1 }, at: new Date().toISOString() };
    await callbacks.receive(runId, "pay callback #1", event);
    const again = await sendEvent(service, path, { id: 1 });
    expect([again.status, again.body.code]).toEqual([409, "callback_used"]);
    expect((await service.ended("paid", runId)).finalOutputs).toEqual({ event: { id: 1 } });
  });

  it("is cancelled, and takes no event, when another node of its map fails", async () => {
    await using hook = await startHookServer();
    const { nodes }: any = paid(hook);
    const inner = { pay: nodes.pay, bad: { type: "repeatable", with: { gate: "bad", fails: 1 } } };
    const definition = {
      nodes: {
        each: { type: "map", onError: "continue", with: { items: [1], nodes: inner, result: "${{ nodes.pay.output }}" } },
        hold: { type: "repeatable", needs: ["each"], with: { gate: "hold" } },
      },
    };
    await using service = await startPaid(hook, { definitions: { "paid.json": definition } });
    const { runId, path } = await waitingCallback(service, hook);
    service.nodes.gate("bad").open();
    await service.until("paid", runId, ({ nodeResults }) => nodeResults.hold?.status === "running");
    expect((await sendEvent(service, path, {})).body.code).toBe("callback_ended");
    service.nodes.gate("hold").open();
    const ended = await service.ended("paid", runId);
    expect(ended).toMatchObject({ status: "completed", nodeResults: { "each[0].pay": { status: "cancelled" } } });
  });

  it("keeps the first of an event, another event and the end of the wait, also if none of them saw another before", async () => {
    await using hook = await startHookServer();
    await using service = await startPaid(hook);
    const { callbacks } = service.app.port(workflowRuntime);
    const at = new Date().toISOString();
    const closed = { at, error: { code: "callback_timeout", message: "late", isFinal: false } };
    expect(await callbacks.receive("wrun_1", "n callback #1", { body: 1, at })).toBe(undefined);
    expect(await callbacks.receive("wrun_1", "n callback #1", { body: 2, at })).toEqual({ body: 1, at });
    expect(await callbacks.close("wrun_1", "n callback #1", closed)).toEqual({ body: 1, at });
    expect(await callbacks.close("wrun_1", "n callback #2", closed)).toEqual(closed);
    expect(await callbacks.receive("wrun_1", "n callback #2", { body: 3, at })).toEqual(closed);
  });

  it("stores no plain token or secret with the event, also not the secrets that only its run knows", async () => {
    await using hook = await startHookServer();
    const definition: any = paid(hook, {}, { sensitive: ["card"] });
    definition.parameters = { type: "object", properties: { pin: { type: "string", writeOnly: true } } };
    definition.nodes.hold = { type: "repeatable", needs: ["pay"], with: { gate: "hold" } };
    const runtime = { publicUrl: "https://workflows.example/in-front/", secrets: { KEY: new Secret("a-configured-key") } };
    await using service = await startPaid(hook, { runtime, definitions: { "paid.json": definition } });
    const { runId, path, token } = await waitingCallback(service, hook, { pin: "a-secret-pin" });
    await sendEvent(service, path, { card: "4111-1111", seen: [token, "a-configured-key", "a-secret-pin"] });
    const stored = JSON.stringify((await service.app.port(ports.records).collection({ name: "workflow-gates" }).query({})).items);
    expect(stored).toContain(`${runId}:pay callback #1`);
    for (const secret of [token, "4111-1111", "a-configured-key", "a-secret-pin"]) expect(stored).not.toContain(secret);
    service.nodes.gate("hold").open();
    expect((await service.ended("paid", runId)).finalOutputs.event).toEqual({ card: "***", seen: ["***", "***", "***"] });
  });

  it("has an address for each item of a map, and in a sub-workflow", async () => {
    await using hook = await startHookServer();
    const inner: any = paid(hook);
    const nodes = { pay: inner.nodes.pay };
    await using service = await startPaid(hook, {
      definitions: {
        "paid.json": {
          nodes: {
            each: { type: "map", with: { items: "${{ [1, 2] }}", nodes, result: "${{ nodes.pay.output.id }}" } },
            below: { type: "workflow", needs: ["each"], with: { workflow: "inner" } },
          },
          outputs: { all: "${{ nodes.each.output }}", below: "${{ nodes.below.output.event.id }}" },
        },
        "inner.json": inner,
      },
    });
    const runId = await service.trigger("paid");
    await expect.poll(() => hook.received.length).toBe(2);
    const at = (index: number) =>
      hook.received.findIndex(({ headers }) => String(headers["idempotency-key"]).includes(`each%5B${index}%5D`));
    for (const index of [1, 0])
      expect((await sendEvent(service, addressIn(hook, at(index)).path, { id: `item ${index}` })).status).toBe(200);
    await expect.poll(() => hook.received.length).toBe(3);
    expect((await sendEvent(service, addressIn(hook).path, { id: "below" })).status).toBe(200);
    expect((await service.ended("paid", runId)).finalOutputs).toEqual({ all: ["item 0", "item 1"], below: "below" });
  });

  it("shows its token to the receiver alone: no log line, event, detail or stored record of a run has it", async () => {
    await using hook = await startHookServer();
    const options = { adapters: [httpNode({ allow: [hook.host] }), recordAudit({})] };
    await using service = await startPaid(hook, options, {}, { sensitive: ["card"] });
    const { runId, path, token } = await waitingCallback(service, hook);
    const events = await service.events(runId);
    await sendEvent(service, path, { card: "4111-1111", seen: `at /callback/${token}` });
    const detail = await service.ended("paid", runId);
    expect(detail.finalOutputs.event).toEqual({ card: "***", seen: "at /callback/***" });
    const { items: audited } = await service.app.port(ports.audit).read();
    expect(audited).toMatchObject([{ action: "callback.receive", object: `${runId}/pay`, who: { role: "link" } }]);
    const told = JSON.stringify([detail, await events.rest(), service.telemetry.lines, service.telemetry.requests, audited]);
    expect(told).not.toContain(token.split(".")[1]);
    expect(told).not.toContain("4111-1111");
  });

  it.each([
    ["in an instance without workflow.publicUrl", {}, {}, "Callbacks need the setting workflow.publicUrl"],
    ["without a request", { request: undefined }, undefined, 'The key "request" is missing'],
    [
      "with its address outside of the body",
      { request: { url: "${{ callback.url }}" } },
      undefined,
      "`callback` is known in the",
    ],
    ["with a schema that is none", { schema: { type: "text" } }, undefined, "type"],
  ])("is refused %s", async (_where, callback, runtime, message) => {
    await using hook = await startHookServer();
    await using service = await startPaid(hook, runtime ? { runtime } : {}, callback);
    const { broken } = (await service.call("GET", "/api/workflows")).body;
    const messages = broken[0].problems.map((problem: { message: string }) => problem.message);
    expect(messages).toContainEqual(expect.stringContaining(message));
  });
});

it("an instance without nodes of type http refuses callbacks", async () => {
  await using service = await startWorkflowService({
    definitions: { "paid.json": paid({ url: "http://127.0.0.1/" }) },
    runtime: { publicUrl: "https://workflows.example" },
  });
  const { broken } = (await service.call("GET", "/api/workflows")).body;
  expect(JSON.stringify(broken)).toContain("no nodes of type http");
});
