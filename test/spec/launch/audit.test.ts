import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadConfig, type ports } from "@portico/core";
import { createClient } from "@portico/core/client";
import { auditContract } from "@portico/operator/audit/contract";
import { local, localSchema } from "@portico/presets/local";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type McpAccountServer, startMcpAccountServer } from "../../harness/mcp-account-server.ts";
import { type HookServer, startHookServer } from "../../harness/hook-server.ts";
import { openCommand, type PorticoProcess, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { waitingCall } from "../../harness/waiting-call.ts";

const PATIENT = { timeout: 30_000, interval: 100 };
const TOKENS = { owner: "owner-token-of-the-audit", member: "member-token-of-the-audit" };

const folder = temporaryFolder();
let service: PorticoProcess;
let hook: HookServer;
let shop: McpAccountServer;
let secrets: string[];
beforeAll(async () => {
  mkdirSync(join(folder.path, "agents/helper"), { recursive: true });
  mkdirSync(join(folder.path, "workflows"));
  writeFileSync(
    join(folder.path, "agents/helper/agent.json"),
    JSON.stringify({
      name: "Helper",
      tools: ["SendUserMessage"],
      memory: true,
      heartbeat: { enabled: false, everyMs: 60_000, prompt: "Look around" },
    }),
  );
  mkdirSync(join(folder.path, "agents/stuck"));
  writeFileSync(
    join(folder.path, "agents/stuck/agent.json"),
    JSON.stringify({ name: "Stuck", engine: "missing", heartbeat: { enabled: false, everyMs: 60_000, prompt: "Look around" } }),
  );
  const review = { type: "human_gate", with: { title: "Publish?", form: { type: "object" } } };
  writeFileSync(
    join(folder.path, "workflows/notice.json"),
    JSON.stringify({ name: "Notice", schedules: [{ name: "daily", cron: "0 0 1 1 *" }], nodes: { review } }),
  );
  hook = await startHookServer();
  shop = await startMcpAccountServer();
  const ask = { type: "human_gate", with: { title: "Publish?", links: true, notify: { url: hook.url } } };
  writeFileSync(join(folder.path, "workflows/linked.json"), JSON.stringify({ nodes: { ask } }));
  const paid = { type: "callback", with: { request: { url: hook.url } } };
  writeFileSync(join(folder.path, "workflows/called.json"), JSON.stringify({ nodes: { paid } }));
  secrets = Object.values(TOKENS);
  service = await startPortico({
    cwd: folder.path,
    config: {
      shutdownGraceMs: 100,
      mcpServers: { shop: { url: shop.url, auth: { type: "oauth" } } },
      audit: { trustedProxies: ["127.0.0.1"] },
      workflow: {
        token: "workflow-token-of-the-audit",
        publicUrl: "https://workflows.example",
        http: { allow: [hook.host] },
        editable: true,
      },
      agent: {
        toolPolicy: { tools: { SendUserMessage: "ask" } },
        tokens: [
          { token: TOKENS.owner, userId: "ada", role: "owner" },
          { token: TOKENS.member, userId: "bob", role: "member" },
        ],
      },
    },
  });
});
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
  await hook?.[Symbol.asyncDispose]();
  await shop?.close();
  folder.remove();
});

interface Answer {
  readonly status: number;
  readonly body: any;
}

async function call(surface: string, method: string, path: string, body?: unknown, headers: object = {}): Promise<Answer> {
  const response = await fetch(service.url(surface) + path, {
    method,
    headers: {
      "x-forwarded-for": "203.0.113.9",
      ...(surface === "agent"
        ? { "x-agent-service-token": TOKENS.owner }
        : { "x-workflow-service-token": "workflow-token-of-the-audit" }),
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? undefined : JSON.parse(text) };
}

const entries = async (query = ""): Promise<ports.AuditEntry[]> =>
  (await call("agent", "GET", `/api/audit?limit=1000${query}`)).body.items;

/** A run of the workflow that waits at its gate, and a grant for it. */
async function waitingRun(): Promise<{ readonly path: string; readonly runId: string; readonly grant: object }> {
  const { body: started } = await call("workflow", "POST", "/api/workflow/webhook?id=notice", {});
  const path = `/api/workflow/notice/runs/${started.runId}`;
  await expect.poll(async () => (await call("workflow", "GET", path)).body.status, PATIENT).toBe("waiting_human");
  const { executionGrantId } = (await call("agent", "POST", "/api/execution-grants", { workflowId: "notice" })).body;
  secrets.push(executionGrantId);
  return { path, runId: started.runId, grant: { "x-execution-grant": executionGrantId } };
}

/** A run that failed, because its gate was rejected. */
async function rejectedRun(): ReturnType<typeof waitingRun> {
  const { grant, ...run } = await waitingRun();
  await call("workflow", "POST", `${run.path}/gate`, { decision: "reject" }, grant);
  await expect.poll(async () => (await call("workflow", "GET", run.path)).body.status, PATIENT).toBe("failed");
  return { grant, ...run };
}

/** A call of a tool that waits for a decision. */
async function undecided(): Promise<{ readonly runId: string; readonly path: string }> {
  const { runId, callId, socket } = await waitingCall(service.url("agent"), TOKENS.owner, "helper", "Use SendUserMessage");
  socket.disconnect();
  return { runId, path: `/api/runs/${runId}/approvals/${callId}` };
}

const event = { promptTemplate: "A secret prompt of the audit: {{payload}}", toolIds: [], maxTurns: 3 };
const webhooks = "/api/agents/helper/webhooks";
const memory = "/api/agents/helper/memory";

/** What changes something, by its route: how it is called, and what is recorded. */
const CHANGES: Readonly<Record<string, () => Promise<readonly [entry: object, answer: Answer]>>> = {
  async "safe-tokens.issue"() {
    const answer = await call("agent", "POST", "/api/safe-tokens", { providerId: "demo", label: "a label" });
    secrets.push(answer.body.token);
    return [{ action: "safe-token.issue", object: answer.body.tokenId }, answer];
  },
  async "safe-tokens.revoke"() {
    const { body } = await call("agent", "POST", "/api/safe-tokens", { providerId: "demo" });
    const answer = await call("agent", "DELETE", `/api/safe-tokens/${body.tokenId}`);
    return [{ action: "safe-token.revoke", object: body.tokenId }, answer];
  },
  async "safe-tokens.revokeAll"() {
    await call("agent", "POST", "/api/safe-tokens", { providerId: "demo" });
    const answer = await call("agent", "DELETE", "/api/safe-tokens");
    return [{ action: "safe-token.revoke-all", count: answer.body.revoked }, answer];
  },
  "execution-grants.issue": async () => [
    { action: "execution-grant.issue", object: expect.any(String) },
    await call("agent", "POST", "/api/execution-grants", { workflowId: "notice" }),
  ],
  async "service-tokens.issue"() {
    const answer = await call("agent", "POST", "/api/service-tokens");
    secrets.push(answer.body.token);
    return [{ action: "service-token.issue", object: expect.any(String) }, answer];
  },
  async "sign-in.issueLink"() {
    const answer = await call("agent", "POST", "/api/sign-in-links");
    secrets.push(answer.body.url.split("/").at(-1));
    return [{ action: "sign-in-link.issue" }, answer];
  },
  async "sign-in.signIn"() {
    const { body } = await call("agent", "POST", "/api/sign-in-links");
    const headers = { origin: service.url("agent") };
    const answer = await call("agent", "POST", "/api/sign-in", { code: body.url.split("/").at(-1) }, headers);
    secrets.push(answer.body.token);
    const who = { role: "owner", userId: "ada", tokenId: expect.stringMatching(/^session_/), address: "203.0.113.9" };
    return [{ action: "session.open", object: expect.stringMatching(/^session_/), who }, answer];
  },
  async "sign-in.signOut"() {
    const { body } = await call("agent", "POST", "/api/sign-in-links");
    const headers = { origin: service.url("agent") };
    const session = await call("agent", "POST", "/api/sign-in", { code: body.url.split("/").at(-1) }, headers);
    secrets.push(session.body.token);
    const answer = await call("agent", "DELETE", "/api/session", undefined, { "x-agent-service-token": session.body.token });
    const who = { role: "owner", userId: "ada", tokenId: expect.stringMatching(/^session_/), address: "203.0.113.9" };
    return [{ action: "session.end", object: expect.stringMatching(/^session_/), who }, answer];
  },
  async "agent-webhook.saveEvent"() {
    const answer = await call("agent", "PUT", `${webhooks}/events/pushed`, event);
    secrets.push(answer.body.secret);
    return [{ action: "webhook-event.save", object: "helper/pushed" }, answer];
  },
  "agent-webhook.setEnabled": async () => [
    { action: "webhook.pause", object: "helper" },
    await call("agent", "PATCH", webhooks, { enabled: false }),
  ],
  async "agent-webhook.rotateSecret"() {
    const answer = await call("agent", "POST", `${webhooks}/secret/rotate`);
    secrets.push(answer.body.secret);
    return [{ action: "webhook-secret.rotate", object: "helper" }, answer];
  },
  async "agent-webhook.saveSender"() {
    const secret = "whsec_of_stripe";
    secrets.push(secret);
    const sender = { kind: "stripe", events: { "invoice.paid": "pushed" }, secret };
    const answer = await call("agent", "PUT", `${webhooks}/senders/billing`, sender);
    return [{ action: "webhook-sender.save", object: "helper/billing" }, answer];
  },
  async "agent-webhook.rotateSenderSecret"() {
    const secret = "whsec_of_stripe_again";
    secrets.push(secret);
    const answer = await call("agent", "POST", `${webhooks}/senders/billing/secret/rotate`, { secret });
    return [{ action: "webhook-sender.rotate", object: "helper/billing" }, answer];
  },
  "agent-webhook.deleteSender": async () => [
    { action: "webhook-sender.delete", object: "helper/billing" },
    await call("agent", "DELETE", `${webhooks}/senders/billing`),
  ],
  "agent-webhook.deleteEvent": async () => [
    { action: "webhook-event.delete", object: "helper/pushed" },
    await call("agent", "DELETE", `${webhooks}/events/pushed`),
  ],
  "agent-schedules.trigger": async () => [
    { action: "schedule.trigger", object: "helper/heartbeat" },
    await call("agent", "POST", "/api/schedules/helper/heartbeat/trigger"),
  ],
  "agent-schedules.pause": async () => [
    { action: "schedule.pause", object: "helper/heartbeat" },
    await call("agent", "POST", "/api/schedules/helper/heartbeat/pause"),
  ],
  "agent-schedules.resume": async () => [
    { action: "schedule.resume", object: "helper/heartbeat" },
    await call("agent", "POST", "/api/schedules/helper/heartbeat/resume"),
  ],
  async "tool-accounts.finish"() {
    const redirectUrl = service.url("agent");
    const { body } = await call("agent", "POST", "/api/tool-accounts/shop/connect", { redirectUrl });
    const received = Object.fromEntries(new URL(shop.authorization.agree(body.url)).searchParams);
    const answer = await call("agent", "POST", "/api/tool-accounts/shop/finish", received);
    secrets.push(...shop.authorization.secrets, received["state"]!);
    return [{ action: "mcp-server.connect", object: "shop" }, answer];
  },
  "tool-accounts.disconnect": async () => [
    { action: "mcp-server.disconnect", object: "shop" },
    await call("agent", "DELETE", "/api/tool-accounts/shop"),
  ],
  async "agent-documents.save"() {
    const text = JSON.stringify({ name: "Written", instructions: "a private value" });
    const answer = await call("agent", "PUT", "/api/agents/written/document", { text }, { "if-none-match": "*" });
    return [{ action: "agent-document.create", object: "written", who: { role: "owner", userId: "ada" } }, answer];
  },
  async "agent-documents.remove"() {
    await call("agent", "PUT", "/api/agents/removed/document", { text: '{ "name": "Removed" }' }, { "if-none-match": "*" });
    const answer = await call("agent", "DELETE", "/api/agents/removed/document", undefined, { "if-match": "*" });
    return [{ action: "agent-document.delete", object: "removed" }, answer];
  },
  "conversations-runs.stopTurns": async () => [
    { action: "user.stop-turns", object: "bob" },
    await call("agent", "POST", "/api/users/bob/stop-turns"),
  ],
  async "conversations-runs.decideApproval"() {
    const { runId, path } = await undecided();
    const answer = await call("agent", "POST", path, { decision: "reject", comment: "a private comment" });
    return [{ action: "approval.reject", object: expect.stringMatching(`^${runId}/`) }, answer];
  },
  async "conversations-runs.revokeConsent"() {
    const { path } = await undecided();
    await call("agent", "POST", path, { decision: "approve", standing: true });
    const { consents } = (await call("agent", "GET", "/api/tool-consents")).body;
    return [
      { action: "tool-consent.revoke", object: consents[0].id },
      await call("agent", "DELETE", `/api/tool-consents/${consents[0].id}`),
    ];
  },
  async "conversations-runs.writeMemory"() {
    await call("agent", "DELETE", memory);
    const answer = await call("agent", "PUT", `${memory}/a%20label`, { text: "a private value" }, { "if-none-match": "*" });
    return [{ action: "agent-memory.create", object: "helper" }, answer];
  },
  async "conversations-runs.eraseMemoryDocument"() {
    await call("agent", "PUT", `${memory}/gone`, { text: "a private value" }, { "if-none-match": "*" });
    return [{ action: "agent-memory.erase", object: "helper" }, await call("agent", "DELETE", `${memory}/gone`)];
  },
  async "conversations-runs.eraseMemory"() {
    await call("agent", "PUT", `${memory}/again`, { text: "a private value" }, { "if-none-match": "*" });
    return [{ action: "agent-memory.erase-all", object: "helper" }, await call("agent", "DELETE", memory)];
  },
  async "conversations-runs.runAgain"() {
    const { runId } = (await call("agent", "POST", "/api/schedules/stuck/heartbeat/trigger")).body;
    await expect.poll(async () => (await call("agent", "GET", `/api/runs/${runId}`)).body.status, PATIENT).toBe("failed");
    return [{ action: "run.again", object: runId }, await call("agent", "POST", `/api/runs/${runId}/again`)];
  },
  async "workflow-service.approve"() {
    const { body: started } = await call("workflow", "POST", "/api/workflow/webhook?id=linked", {});
    await expect.poll(() => hook.received.at(-1)?.body.runId, PATIENT).toBe(started.runId);
    const { pathname } = new URL(hook.received.at(-1)!.body.link);
    secrets.push(pathname.split("/").at(-1)!);
    const page = await fetch(service.url("workflow") + pathname, {
      method: "POST",
      headers: { "x-forwarded-for": "203.0.113.9" },
      body: new URLSearchParams({ decision: "approve", comment: "a private comment" }),
    });
    const who = { role: "link", tokenId: expect.stringMatching(/^link_/) };
    return [{ action: "gate.approve", object: `${started.runId}/ask`, who } as object, { status: page.status, body: undefined }];
  },
  async "workflow-service.receiveCallback"() {
    const { body: started } = await call("workflow", "POST", "/api/workflow/webhook?id=called", {});
    await expect.poll(() => hook.received.at(-1)?.body.runId, PATIENT).toBe(started.runId);
    const { pathname } = new URL(hook.received.at(-1)!.body.url);
    secrets.push(pathname.split("/").at(-1)!);
    const answer = await call("workflow", "POST", pathname, { note: "a private value" });
    const who = { role: "link", tokenId: expect.stringMatching(/^callback_/) };
    return [{ action: "callback.receive", object: `${started.runId}/paid`, who }, answer];
  },
  async "workflow-service.decide"() {
    const { path, runId, grant } = await waitingRun();
    const answer = await call(
      "workflow",
      "POST",
      `${path}/gate`,
      { decision: "approve", values: { note: "a private value" } },
      grant,
    );
    return [
      { action: "gate.approve", object: `${runId}/review`, who: { role: "grant", userId: "ada", tokenId: expect.any(String) } },
      answer,
    ];
  },
  async "workflow-service.cancel"() {
    const { path, runId, grant } = await waitingRun();
    return [
      { action: "workflow-run.cancel", object: runId, who: { role: "grant" } },
      await call("workflow", "POST", `${path}/cancel`, undefined, grant),
    ];
  },
  async "workflow-service.saveDefinition"() {
    const order = { workflowId: "written", edits: true };
    const { executionGrantId } = (await call("agent", "POST", "/api/execution-grants", order)).body;
    secrets.push(executionGrantId);
    const text = "nodes: { a: { type: transform, with: { value: a private value } } }";
    const headers = { "x-execution-grant": executionGrantId, "if-none-match": "*" };
    const answer = await call("workflow", "PUT", "/api/workflow/written/definition", { text }, headers);
    const who = { role: "grant", userId: "ada", tokenId: expect.any(String) };
    return [{ action: "workflow-definition.create", object: "written", who }, answer];
  },
  "workflow-service.triggerSchedule": async () => [
    { action: "workflow-schedule.trigger", object: "notice/daily", who: { role: "workflow" } },
    await call("workflow", "POST", "/api/workflow/notice/schedules/daily/trigger"),
  ],
  "workflow-service.pauseSchedule": async () => [
    { action: "workflow-schedule.pause", object: "notice/daily", who: { role: "workflow" } },
    await call("workflow", "POST", "/api/workflow/notice/schedules/daily/pause"),
  ],
  "workflow-service.resumeSchedule": async () => [
    { action: "workflow-schedule.resume", object: "notice/daily", who: { role: "workflow" } },
    await call("workflow", "POST", "/api/workflow/notice/schedules/daily/resume"),
  ],
  async "workflow-service.resume"() {
    const { path, runId, grant } = await rejectedRun();
    const answer = await call("workflow", "POST", `${path}/resume`, { idempotencyKey: "k" }, grant);
    return [{ action: "workflow-run.resume", object: runId, who: { role: "grant" } }, answer];
  },
  async "workflow-service.rerun"() {
    const { path, runId, grant } = await rejectedRun();
    const answer = await call("workflow", "POST", `${path}/rerun`, { idempotencyKey: "k" }, grant);
    return [{ action: "workflow-run.rerun", object: runId, who: { role: "grant" } }, answer];
  },
};

/** Routes that change no right, secret or configuration, or whose own records say who did what. */
const UNRECORDED: Readonly<Record<string, string>> = {
  "model-proxy.messages": "a model call: the log and the metrics count it",
  "model-proxy.chatCompletions": "a model call: the log and the metrics count it",
  "conversations-runs.changeRun": "a user's own run",
  "conversations-runs.start": "a query: its run and receipt are its record",
  "conversations-runs.ask": "a query: its run and receipt are its record",
  "conversations-runs.followUp": "a query: its run and receipt are its record",
  "conversations-runs.steer": "a message to a user's own turn: its conversation has it",
  "conversations-runs.fillPrompt": "reads only",
  "conversations-runs.lookup": "reads only",
  "conversations-runs.clear": "a user's own conversation",
  "conversations-runs.chooseBranch": "a user's own conversation",
  "attachments-media.uploadAttachment": "a user's own file",
  "attachments-media.uploadMedia": "a user's own file",
  "attachments-media.mediaLinks": "links to a user's own files, for five minutes",
  "agent-webhook.trigger": "an event: its run is its record",
  "agent-webhook.receive": "an event: its run is its record",
  "tool-accounts.connect": "gives no access: its end does",
  "agent-documents.check": "saves nothing",
  "workflow-service.checkDefinition": "saves nothing",
  "workflow-service.testDefinition": "saves nothing, and calls nothing",
  "workflow-service.createDefinition": "always refused: definitions are deployed as files",
  "workflow-service.replaceDefinition": "always refused: definitions are deployed as files",
  "workflow-service.trigger": "starts a run, which is its record",
  "workflow-service.start": "starts a run, which is its record",
};

const { value: settings } = loadConfig(localSchema, { env: {} });
const changing = Object.entries(
  Object.fromEntries(
    (local({ settings, providers: [] }).plugins ?? []).map(({ name, spec }) => [
      name,
      spec.contract as Record<string, { method: string; path: string }>,
    ]),
  ),
).flatMap(([plugin, contract]) =>
  Object.entries(contract)
    .filter(([, { method }]) => method !== "GET")
    .map(([key, { method, path }]) => ({ route: `${plugin}.${key}`, method, path })),
);

describe("every route that changes something", () => {
  it.each(Object.entries(CHANGES))("%s leaves an entry of who, what and from where", async (_route, change) => {
    const known = new Set((await entries()).map(({ id }) => id));
    const [wanted, answer] = await change();
    expect([200, 201, 202, 204]).toContain(answer.status);
    const fresh = (await entries()).filter(({ id }) => !known.has(id));
    const who = { role: "owner", userId: "ada", tokenId: expect.stringMatching(/^token_/), address: "203.0.113.9" };
    const { who: actor, ...what } = { who: {}, ...wanted };
    const role = (actor as { role?: string }).role;
    expect(fresh).toContainEqual(
      expect.objectContaining({
        ...what,
        outcome: "done",
        who: expect.objectContaining(role === undefined ? who : { address: "203.0.113.9", ...actor }),
      }),
    );
  });

  it("is either among these, or on the list of those that need no entry, with the reason", () => {
    const listed = [...Object.keys(CHANGES), ...Object.keys(UNRECORDED)];
    expect(changing.map(({ route }) => route).filter((route) => !listed.includes(route))).toEqual([]);
    expect(listed.filter((route) => !changing.some((each) => each.route === route))).toEqual([]);
  });
});

describe("the audit", () => {
  it("is only for the owner, and is read by one documented call", async () => {
    const ask = async (headers: object) => (await call("agent", "GET", "/api/audit", undefined, headers)).status;
    expect([
      await ask({}),
      await ask({ "x-agent-service-token": TOKENS.member }),
      await ask({ "x-agent-service-token": "nobody" }),
    ]).toEqual([200, 403, 401]);
    const { body } = await call("agent", "GET", "/openapi.json");
    expect(Object.keys(body.paths["/api/audit"])).toEqual(["get"]);
  });

  it("refuses what its contract does not know", async () => {
    for (const query of ["limit=0", "limit=1001", "since=yesterday", "after=x", "action=A%20B", "who=ada", "userId=", "address="])
      expect([query, (await call("agent", "GET", `/api/audit?${query}`)).status]).toEqual([query, 400]);
  });

  it("is read by the address of the callers, or by its beginning", async () => {
    await CHANGES["safe-tokens.issue"]!();
    await service.run("token", "issue", "--provider", "demo");
    const all = await entries();
    const ofCallers = all.filter(({ who }) => who.address === "203.0.113.9");
    expect(ofCallers.length).toBeLessThan(all.length);
    for (const address of ["203.0.113.9", "203.0."]) expect(await entries(`&address=${address}`)).toEqual(ofCallers);
    expect(await entries("&address=203.0.113.90")).toEqual([]);
    const printed = (await service.run("audit", "--json", "--address", "203.0.113.")).stdout.trim().split("\n");
    expect(printed.map((line) => JSON.parse(line))).toEqual(ofCallers);
  });

  it("is read by action, by time and in pages", async () => {
    const since = new Date().toISOString();
    for (let at = 0; at < 3; at++) await CHANGES["safe-tokens.issue"]!();
    const client = createClient(auditContract, {
      baseURL: service.url("agent"),
      headers: { "x-agent-service-token": TOKENS.owner },
    });
    const ids: string[] = [];
    let after: string | undefined;
    do {
      const page = await client.entries({
        query: { since, action: "safe-token.issue", limit: "2", ...(after !== undefined && { after }) },
      });
      ids.push(...page.items.map(({ id }) => id));
      after = page.next;
    } while (after !== undefined);
    expect(new Set(ids).size).toBe(3);
    expect(await entries(`&until=${since}&action=safe-token.issue`)).not.toContainEqual(expect.objectContaining({ id: ids[0] }));
  });

  it("is read by user and by a part of the object", async () => {
    await CHANGES["safe-tokens.issue"]!();
    const [newest] = await entries("&action=safe-token.issue");
    const objects = (found: readonly ports.AuditEntry[]) => found.map(({ object }) => object);
    expect(objects(await entries(`&userId=ada&object=${newest!.object!.slice(-8)}`))).toEqual([newest!.object]);
    expect(await entries("&userId=nobody")).toEqual([]);
  });

  it("contains no secret, prompt, value or label", async () => {
    for (const change of Object.values(CHANGES)) await change();
    const text = JSON.stringify(await entries());
    for (const secret of [...secrets, event.promptTemplate, "a private value", "a private comment", "a label"].filter(Boolean))
      expect(text).not.toContain(secret);
  });

  it("records an edit that is refused as begun and failed, with the code", async () => {
    await call("agent", "DELETE", `${webhooks}/events/missing`);
    const [failed, begun] = await entries("&action=webhook-event.delete");
    expect([failed, begun]).toMatchObject([
      { outcome: "failed", error: "webhook_event_not_found", of: begun?.id },
      { outcome: "begun", object: "helper/missing" },
    ]);
  });
});

describe("portico audit", () => {
  it("prints entries of calls and of commands, the newest first, for people and as JSON lines", async () => {
    const token = await service.token("demo");
    const { stdout, code } = await service.run("audit", "--json", "--since", "1h");
    expect(code).toBe(0);
    const printed = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as ports.AuditEntry);
    expect(printed[0]).toMatchObject({ action: "safe-token.issue", who: { role: "command" } });
    expect(printed.map(({ at }) => at)).toEqual(
      printed
        .map(({ at }) => at)
        .toSorted()
        .toReversed(),
    );
    const lines = await service.run("audit", "--action", "safe-token.issue");
    expect(lines.stdout).toMatch(/^\S+Z  safe-token\.issue  tok_\w+  by command/);
    expect(lines.stdout + stdout).not.toContain(token);
    expect((await service.run("audit", "--since", "2000-01-01T00:00:00Z", "--action", "none")).stdout).toBe("");
    expect((await service.run("audit", "--since", "yesterday")).code).toBe(64);
  });

  it("records grants of the command line, and revoked tokens", async () => {
    await service.token("demo");
    expect((await service.run("grant", "issue", "--workflow", "notice")).code).toBe(0);
    expect((await service.run("token", "revoke", "--all")).code).toBe(0);
    const { stdout } = await service.run("audit", "--json");
    expect(
      stdout
        .split("\n")
        .slice(0, 2)
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { action: "safe-token.revoke-all", who: { role: "command" } },
      { action: "execution-grant.issue", who: { role: "command" } },
    ]);
  });

  it("records removed attachments, by their ids", async () => {
    const form = new FormData();
    form.append("file", new Blob(["a private text"]), "private-name.txt");
    const headers = { "x-agent-service-token": TOKENS.member };
    const uploaded = await fetch(`${service.url("agent")}/api/attachments`, { method: "POST", headers, body: form });
    const { attachmentId } = (await uploaded.json()) as { attachmentId: string };
    expect((await service.run("attachments", "remove", attachmentId)).code).toBe(0);
    const { stdout } = await service.run("audit", "--json");
    const printed = stdout.split("\n").slice(0, 3);
    // Their times may be the same.
    const summary = printed.map((line) => JSON.parse(line) as ports.AuditEntry);
    expect(summary.map(({ action, outcome, object }) => [action, outcome, object].join(" ")).toSorted()).toEqual([
      `attachment.remove done ${attachmentId}`,
      `attachments.remove begun ${attachmentId}`,
      `attachments.remove done ${attachmentId}`,
    ]);
    expect(stdout).not.toContain("private");
  });

  it("follows the audit, and ends with 130 on Ctrl-C", async () => {
    await using following = openCommand(["audit", "--follow", "--json", "--action", "safe-token.issue"], { cwd: folder.path });
    // It follows from when it has begun.
    await expect
      .poll(
        async () => {
          await CHANGES["safe-tokens.issue"]!();
          return following.stdout();
        },
        { ...PATIENT, interval: 500 },
      )
      .toContain("safe-token.issue");
    following.signal("SIGINT");
    const { code, stdout } = await following.ended;
    expect(code).toBe(130);
    const ids = stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as ports.AuditEntry).id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});

it("a rotation of secrets is recorded, by the names of the settings", async () => {
  const at = temporaryFolder();
  const write = (value: string) => writeFileSync(join(at.path, "owner"), value, { mode: 0o600 });
  write("owner-1");
  const tokens = [{ token: { file: "owner" }, userId: "ada", role: "owner" }];
  const running = await startPortico({
    cwd: at.path,
    hasOwnProcess: true,
    config: { rotation: { watchMs: 20 }, agent: { tokens } },
  });
  write("owner-2");
  const read = async () => {
    const response = await fetch(`${running.url("agent")}/api/audit`, { headers: { "x-agent-service-token": "owner-2" } });
    return response.status === 200 ? ((await response.json()) as { items: ports.AuditEntry[] }).items : [];
  };
  await expect.poll(read, PATIENT).toHaveLength(2);
  expect(await read()).toMatchObject([
    { action: "secrets.rotate", object: "agent.tokens", outcome: "done", who: { role: "instance" } },
    { action: "secrets.rotate", object: "agent.tokens", outcome: "begun" },
  ]);
  await running[Symbol.asyncDispose]();
  expect(readFileSync(join(at.path, "owner"), "utf8")).toBe("owner-2");
  at.remove();
});
