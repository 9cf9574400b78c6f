import { recordAudit } from "@portico/adapters/audit/records";
import { createManualClock } from "@portico/adapters/clock/manual";
import { httpNode } from "@portico/workflow-nodes/http";
import { ports } from "@portico/core";
import { describe, expect, it, vi } from "vitest";
import { type HookServer, startHookServer } from "../../harness/hook-server.ts";
import { form, gated, linked, PUBLIC_URL, startGated } from "../../harness/linked-gate.ts";
import { isClusterRun } from "../../harness/members.ts";
import type { WorkflowService } from "../../harness/workflow-app.ts";

async function open(service: WorkflowService, path: string) {
  const answer = await fetch(service.url + path);
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

async function send(
  service: WorkflowService,
  path: string,
  fields: Readonly<Record<string, string | undefined>>,
  headers: object = {},
) {
  const answer = await fetch(service.url + path, {
    method: "POST",
    body: new URLSearchParams(fields as Record<string, string>),
    headers: { ...headers },
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

const grantHeaders = async (service: WorkflowService) => ({ "x-execution-grant": await service.grant({ workflowId: "gated" }) });

describe("an approval link (open points 14)", () => {
  it("shows the question without a token of the service, as often as it is opened, and decides nothing by that", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook);
    const { runId, path } = await linked(service, hook);
    for (const method of ["GET", "HEAD", "GET"]) {
      const answer = await fetch(service.url + path, { method });
      expect(answer.status).toBe(200);
      if (method === "HEAD") continue;
      const page = await answer.text();
      expect(page).toContain('<h1 dir="auto">Publish &#60;b&#62;this&#60;/b&#62;?</h1>');
      expect(page).toContain("About the &#60;lift&#62; &#38; more");
    }
    expect(await service.detail("gated", runId)).toMatchObject({ status: "waiting_human" });
  });

  it("shows hidden characters, and isolates texts from each other", async () => {
    await using hook = await startHookServer();
    const form = { properties: { to: { type: "string", title: "To\u202e", description: "Who\u200b?", default: "a\u2066b" } } };
    await using service = await startGated(hook, {}, { title: "Pay \u202eelpoep\u202c?", form });
    const { path } = await linked(service, hook, { what: "\u2067it\u2069" });
    const { text } = await open(service, path);
    expect(text).not.toMatch(/[\u202a-\u202e\u2067-\u2069\u200b]/u);
    expect(text).toContain("<title>Pay [U+202E]elpoep[U+202C]?</title>");
    expect(text).toContain('<h1 dir="auto">Pay [U+202E]elpoep[U+202C]?</h1>');
    expect(text).toContain('<div class="message" dir="auto">About [U+2067]it[U+2069]</div>');
    expect(text).toContain("<bdi>To[U+202E]</bdi>");
    expect(text).toContain("Who[U+200B]?");
    // A control sends its own text. So the text stands below it.
    expect(text).toContain(">a\u2066b</textarea>");
    expect(text).toContain("Hidden characters: <bdi>a[U+2066]b</bdi>");
  });

  it("decides with a POST, and the run continues with the decision", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook);
    const approved = await linked(service, hook);
    const answer = await send(service, approved.path, { decision: "approve", comment: "fine\r\nby me" });
    expect([answer.status, answer.text.includes("<h1>Approved</h1>")]).toEqual([200, true]);
    expect(await service.ended("gated", approved.runId)).toMatchObject({
      status: "completed",
      finalOutputs: { decision: { decision: "approve", comment: "fine\nby me", values: {} } },
    });
    const rejected = await linked(service, hook);
    expect((await send(service, rejected.path, { decision: "reject" })).text).toContain("<h1>Rejected</h1>");
    expect(await service.ended("gated", rejected.runId)).toMatchObject({ status: "failed", error: { code: "rejected" } });
  });

  it("takes the values of the gate's form, with their types, and the form's defaults", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(
      hook,
      {},
      { form: { ...form, properties: { ...form.properties, note: { type: "string", default: "none" } } } },
    );
    const { runId, path } = await linked(service, hook);
    const fields = { "value.audience": '"members"', "value.copies": "3", "value.urgent": "false", "value.tags": '["a","b"]' };
    expect((await send(service, path, { decision: "approve", ...fields })).status).toBe(200);
    const { finalOutputs } = await service.ended("gated", runId);
    const values = { audience: "members", copies: 3, urgent: false, tags: ["a", "b"], note: "none" };
    expect(finalOutputs.decision.values).toEqual(values);
  });

  it("answers values that do not match the form with 400 and the form with its texts, and the gate waits on", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook, {}, { form });
    const { runId, path } = await linked(service, hook);
    const { status, text } = await send(service, path, { decision: "approve", "value.copies": "0", "value.note": '<i>"' });
    expect(status).toBe(400);
    expect(text).toContain("must be at least 1");
    expect(text).toContain('value="&#60;i&#62;&#34;"');
    for (const fields of [
      { decision: "approve", "value.audience": "{" },
      { decision: "maybe" },
      {},
      { decision: "approve", comment: "x".repeat(5000) },
    ])
      expect((await send(service, path, fields)).status).toBe(400);
    expect((await send(service, path, {})).text).toContain("the field decision is approve or reject");
    expect((await service.detail("gated", runId)).status).toBe("waiting_human");
    // A rejection needs no values.
    expect((await send(service, path, { decision: "reject", "value.copies": "0" })).status).toBe(200);
  });

  it("counts once: of two POSTs at the same time one decides, and the other is 410", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook);
    const { runId, path } = await linked(service, hook);
    // All three find the gate undecided. On a cluster, each member has its own stores: chance decides there.
    const decisions = service.app.port(ports.records).collection({ name: "workflow-gates" });
    const get = decisions.get.bind(decisions);
    const all = Promise.withResolvers<void>();
    let asked = 0;
    const held = isClusterRun
      ? undefined
      : vi.spyOn(decisions, "get").mockImplementation(async (id) => {
          const found = await get(id);
          if (++asked === 3) all.resolve();
          await all.promise;
          return found;
        });
    const answers = await Promise.all(["approve", "approve", "reject"].map((decision) => send(service, path, { decision })));
    held?.mockRestore();
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    // The run may have ended before a late one.
    for (const status of statuses) expect([200, 410]).toContain(status);
    const { status } = await service.ended("gated", runId);
    expect(status).toBe(statuses[2] === 200 ? "failed" : "completed");
  });

  it("is 410 where the gate was decided otherwise, and when the run has ended", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook, {
      definitions: {
        "gated.json": {
          nodes: {
            ok: { type: "human_gate", with: { title: "Well?", links: true, notify: { url: hook.url } } },
            hold: { type: "repeatable", needs: ["ok"], with: { gate: "hold" } },
          },
        },
      },
    });
    const { runId, path } = await linkedByDefault(service, hook);
    const decided = { decision: "approve", comment: "by the console" };
    await service.call("POST", `/api/workflow/gated/runs/${runId}/gate`, decided, { headers: await grantHeaders(service) });
    for (const answer of [await open(service, path), await send(service, path, { decision: "reject" })]) {
      expect(answer.status).toBe(410);
      expect(answer.text).toContain("This was decided already");
      expect(answer.text).not.toContain("by the console");
    }
    service.nodes.gate("hold").open();
    await service.ended("gated", runId);
    for (const answer of [await open(service, path), await send(service, path, { decision: "reject" })]) {
      expect([answer.status, answer.text.includes("The workflow run has ended")]).toEqual([410, true]);
    }
  });

  it("is 410 after its time, which the definition says and which never outlives the gate's timeout", async () => {
    await using hook = await startHookServer();
    const clock = createManualClock();
    await using service = await startGated(hook, { clock }, { links: { expiresAfter: "1h" } });
    const first = await linked(service, hook);
    expect(Date.parse(first.until)).toBe(clock.now() + 3_600_000);
    await clock.advance(3_599_999);
    expect((await open(service, first.path)).status).toBe(200);
    await clock.advance(1);
    for (const answer of [await open(service, first.path), await send(service, first.path, { decision: "approve" })])
      expect([answer.status, answer.text.includes("This link has expired")]).toEqual([410, true]);
    expect((await service.detail("gated", first.runId)).status).toBe("waiting_human");
    await using other = await startGated(hook, { clock }, { timeout: "10m" });
    const second = await linked(other, hook);
    expect(Date.parse(second.until)).toBe(clock.now() + 600_000);
  });

  it("opens its own gate alone: a changed or a foreign token is 404", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook);
    const one = await linked(service, hook);
    const other = await linked(service, hook);
    const [payload = "", signature = ""] = one.token.split(".");
    const [otherPayload = ""] = other.token.split(".");
    const far = Buffer.from(JSON.stringify([one.runId, "ok", 9e15])).toString("base64url");
    const grant = await service.grant({ workflowId: "gated" });
    for (const token of [
      `${otherPayload}.${signature}`,
      `${far}.${signature}`,
      payload,
      `${payload}.`,
      "x",
      `${one.token}.x`,
      grant,
      "a".repeat(9000),
    ]) {
      const page = await open(service, `/approve/${token}`);
      expect([page.status, page.text.includes("This link is not valid")]).toEqual([404, true]);
      expect((await send(service, `/approve/${token}`, { decision: "approve" })).status).toBe(404);
    }
    expect((await send(service, one.path, { decision: "approve" })).status).toBe(200);
    await service.ended("gated", one.runId);
    expect((await service.detail("gated", other.runId)).status).toBe("waiting_human");
  });

  it("works after a restart between the notification and the decision", async () => {
    await using hook = await startHookServer();
    const first = await startGated(hook);
    const { runId, path } = await linked(first, hook);
    await using second = await startGated(hook, { dataDir: first.dataDir });
    expect((await open(second, path)).status).toBe(200);
    expect((await send(second, path, { decision: "approve" })).status).toBe(200);
    expect(await second.ended("gated", runId)).toMatchObject({ status: "completed" });
    await first.close().catch(() => {});
    expect(hook.received).toHaveLength(1);
  });

  it("ends when the instance gets another key, and the gate can still be decided in another way", async () => {
    await using hook = await startHookServer();
    const first = await startGated(hook);
    const { runId, path } = await linked(first, hook);
    await using second = await startGated(hook, { dataDir: first.dataDir, key: "another key of this test" });
    expect((await open(second, path)).status).toBe(404);
    expect((await send(second, path, { decision: "approve" })).status).toBe(404);
    await second.until("gated", runId, ({ status }) => status === "waiting_human");
    const headers = await grantHeaders(second);
    const answer = await second.call("POST", `/api/workflow/gated/runs/${runId}/gate`, { decision: "approve" }, { headers });
    expect(answer.status).toBe(200);
    expect(await second.ended("gated", runId)).toMatchObject({ status: "completed" });
    await first.close().catch(() => {});
  });

  it("is in the notification alone: no log line, event, detail or store has it", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook);
    const { runId, path, token } = await linked(service, hook);
    const events = await service.events(runId);
    // A person may paste it.
    await send(service, path, { decision: "approve", comment: `I used ${PUBLIC_URL}approve/${token}` });
    const detail = await service.ended("gated", runId);
    expect(detail.finalOutputs.decision.comment).toBe(`I used ${PUBLIC_URL}approve/***`);
    const records = [...(await service.app.port(ports.records).collection({ name: "workflow-runs" }).query({})).items];
    const told = JSON.stringify([detail, await events.rest(), service.telemetry.lines, service.telemetry.requests, records]);
    expect(told).not.toContain(token);
    expect(told).not.toContain(token.split(".")[1]);
  });

  it("is a page without scripts that tells its address to no one, for pages and errors alike", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook);
    const { path } = await linked(service, hook);
    for (const { headers, text } of [await open(service, path), await open(service, "/approve/x")]) {
      expect(headers.get("content-security-policy")).toMatch(
        /^default-src 'none'; style-src 'sha256-[\w+/=]+'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'$/,
      );
      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("x-robots-tag")).toBe("noindex");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(text).not.toContain("<script");
    }
  });

  it("takes a form of any origin, because only the token counts, and no other body", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook);
    const { path } = await linked(service, hook);
    const foreign = await send(service, path, { decision: "approve" }, { origin: "null" });
    expect([foreign.status, foreign.headers.get("access-control-allow-origin")]).toEqual([200, null]);
    const other = await service.call("POST", path, { decision: "approve" }, { token: "" });
    expect([other.status, other.body.code]).toEqual([415, "unsupported_media_type"]);
    const large = await send(service, path, { comment: "x".repeat(1024 * 1024) });
    expect(large.status).toBe(413);
  });

  it("is audited as a decision by a link, which is named and not revealed", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook, { adapters: [httpNode({ allow: [hook.host] }), recordAudit({})] });
    const { runId, path, token } = await linked(service, hook);
    await send(service, path, { decision: "approve" });
    const { items } = await service.app.port(ports.audit).read();
    expect(items).toMatchObject([
      {
        action: "gate.approve",
        object: `${runId}/ok`,
        who: { role: "link", tokenId: expect.stringMatching(/^link_[\w-]{16}$/) },
      },
    ]);
    expect(JSON.stringify(items)).not.toContain(token.split(".")[1]);
  });

  it.each([
    ["without `notify`", { notify: undefined }, { publicUrl: PUBLIC_URL }, "Links need `notify`"],
    ["in an instance without workflow.publicUrl", {}, {}, "Approval links need the setting workflow.publicUrl"],
  ])("is refused %s", async (_where, gate, runtime, message) => {
    await using hook = await startHookServer();
    await using service = await startGated(hook, { runtime }, gate);
    const { broken } = (await service.call("GET", "/api/workflows")).body;
    const messages = broken[0].problems.map((problem: { message: string }) => problem.message);
    expect(messages).toContainEqual(expect.stringContaining(message));
  });

  it("belongs to one gate inside a map", async () => {
    await using hook = await startHookServer();
    const inner = { ok: (gated(hook) as any).nodes.ok };
    inner.ok.with = { ...inner.ok.with, message: "" };
    await using service = await startGated(hook, {
      definitions: {
        "gated.json": {
          nodes: {
            each: { type: "map", with: { items: "${{ [1, 2] }}", nodes: inner, result: "${{ nodes.ok.output.comment }}" } },
          },
          outputs: { all: "${{ nodes.each.output }}" },
        },
      },
    });
    const runId = await service.trigger("gated");
    await expect.poll(() => hook.received.length).toBe(2);
    const byKey = new Map(hook.received.map(({ headers, body }) => [headers["idempotency-key"], body.link as string]));
    for (const at of [1, 0]) {
      const link = byKey.get(`${runId}:${encodeURIComponent(`each[${at}].ok`)}`)!;
      const path = link.slice(link.indexOf("/approve/"));
      await expect.poll(async () => (await open(service, path)).status).toBe(200);
      expect((await send(service, path, { decision: "approve", comment: `${at}` })).status).toBe(200);
    }
    expect((await service.ended("gated", runId)).finalOutputs.all).toEqual(["0", "1"]);
  });
});

/** The same for a gate whose notification has the default body. */
async function linkedByDefault(service: WorkflowService, hook: HookServer) {
  const runId = await service.trigger("gated");
  await service.until("gated", runId, ({ humanGate }) => humanGate?.notification !== undefined);
  const { link } = hook.received.at(-1)!.body as { link: string };
  return { runId, path: link.slice(link.indexOf("/approve/")) };
}
