import { writeFileSync } from "node:fs";
import { functionTools } from "@portico/adapters/tools/functions";
import { afterEach, describe, expect, it } from "vitest";
import { type Holder, TOKENS } from "../../harness/agent-app.ts";
import {
  scriptedAgent,
  startWebhookService,
  type WebhookService,
  type WebhookServiceOptions,
} from "../../harness/webhook-app.ts";

const EVENT = { promptTemplate: "Deploy {{version}}", toolIds: ["SendUserMessage"], maxTurns: 7 };

let service: WebhookService;
afterEach(() => service?.close());

async function start(options: WebhookServiceOptions = {}): Promise<void> {
  service = await startWebhookService(options);
}
const put = (event: string, body: unknown = EVENT, holder?: Holder) =>
  service.manage("PUT", `helper/webhooks/events/${event}`, body, holder);
const read = async () => (await service.manage("GET", "helper/webhooks")).body;
const told = ({ status, body }: { readonly status: number; readonly body: any }) => [status, body.error];

describe("PUT /api/agents/:id/webhooks/events/:event (4.3)", () => {
  it("creates an event, enables the endpoint, and returns the first secret once", async () => {
    await start();
    const first = await put("deploy");
    expect([first.status, first.body]).toEqual([
      200,
      { success: true, enabled: true, event: "deploy", secret: expect.stringMatching(/^whs_[A-Za-z0-9_-]{43}$/) },
    ]);
    expect(await read()).toMatchObject({ enabled: true, hasSecret: true, events: [{ event: "deploy", ...EVENT }] });
    expect((await service.trigger(first.body.secret, { event: "deploy" })).status).toBe(200);
  });

  it("saving again when a secret exists returns only success, enabled, event", async () => {
    await start();
    await put("deploy");
    expect((await put("deploy", { ...EVENT, maxTurns: 2 })).body).toEqual({ success: true, enabled: true, event: "deploy" });
    expect((await put("other")).body).toEqual({ success: true, enabled: true, event: "other" });
    expect((await read()).events).toEqual([
      { event: "deploy", ...EVENT, maxTurns: 2 },
      { event: "other", ...EVENT },
    ]);
  });

  it("of several first saves at once, exactly one gets the secret, and it is the one that counts", async () => {
    await start();
    const saves = await Promise.all(Array.from({ length: 8 }, (_, index) => put(`event-${index}`)));
    const secrets = saves.flatMap(({ body }) => body.secret ?? []);
    expect(secrets).toHaveLength(1);
    const saved = saves.filter(({ status }) => status === 200);
    expect((await read()).events).toHaveLength(saved.length);
    expect((await service.trigger(secrets[0], { event: saved[0]!.body.event })).status).toBe(200);
  });

  it("maxTurns is 5 where it is left out", async () => {
    await start();
    const { maxTurns: _maxTurns, ...rest } = EVENT;
    await put("deploy", rest);
    expect((await read()).events[0].maxTurns).toBe(5);
  });

  it("takes a template of 32,768 characters that are not ASCII, within the limit of the body (8)", async () => {
    await start();
    const promptTemplate = `${"😀".repeat(20_000)}${"x".repeat(12_768)}`;
    expect((await put("deploy", { ...EVENT, promptTemplate })).status).toBe(200);
    expect((await read()).events[0].promptTemplate).toBe(promptTemplate);
  });

  it("records the current file access scope, which callers do not send", async () => {
    await start();
    await put("deploy");
    expect(JSON.parse(service.readText()).webhooks.events.deploy.fileScope).toEqual({ userId: "owner" });
    expect(told(await put("deploy", { ...EVENT, fileScope: { userId: "other" } }))).toEqual([
      400,
      "invalid_webhook_management_request",
    ]);
  });

  it.each<[string, unknown]>([
    ["no template", { toolIds: [] }],
    ["an empty template", { ...EVENT, promptTemplate: "" }],
    ["a template of 32,769 characters", { ...EVENT, promptTemplate: "x".repeat(32_769) }],
    ["no tool list", { promptTemplate: "x" }],
    ["a tool twice", { ...EVENT, toolIds: ["SendUserMessage", "SendUserMessage"] }],
    ["513 tools", { ...EVENT, toolIds: Array.from({ length: 513 }, (_, index) => `tool-${index}`) }],
    ["a tool that is no text", { ...EVENT, toolIds: [1] }],
    ["maxTurns 0", { ...EVENT, maxTurns: 0 }],
    ["maxTurns 101", { ...EVENT, maxTurns: 101 }],
    ["maxTurns 1.5", { ...EVENT, maxTurns: 1.5 }],
    ["maxTurns in words", { ...EVENT, maxTurns: "5" }],
    ["another field", { ...EVENT, enabled: true }],
    ["a list", []],
    ["no JSON", "{"],
    ["nothing", ""],
  ])("400 invalid_webhook_management_request with %s; the file stays as it is", async (_what, body) => {
    await start();
    const before = service.readText();
    const { status, body: answer } = await put("deploy", body);
    expect([status, answer.error]).toEqual([400, "invalid_webhook_management_request"]);
    expect(service.readText()).toBe(before);
  });

  it("field failures add details, by path and without values", async () => {
    await start();
    const { body } = await put("deploy", { ...EVENT, promptTemplate: 7, secretNote: "do-not-repeat" });
    expect(JSON.stringify(body.details)).toContain("promptTemplate");
    expect(JSON.stringify(body)).not.toContain("do-not-repeat");
  });

  it.each(["constructor", "prototype", "__proto__", ".a", "-a", "_a", "a b", "ä", "x".repeat(129), "a/b", "a%00"])(
    "400 invalid_webhook_event with the name %j",
    async (event) => {
      await start();
      const before = service.readText();
      expect(told(await put(encodeURIComponent(event)))).toEqual([400, "invalid_webhook_event"]);
      expect(service.readText()).toBe(before);
    },
  );

  it.each(["a", "A.b_c-9", "9", "x".repeat(128), "toString", "hasOwnProperty"])("takes the name %j", async (event) => {
    await start();
    expect((await put(event)).status).toBe(200);
    expect((await read()).events[0].event).toBe(event);
  });

  it("400 webhook_tool_unavailable names the tools that are not there", async () => {
    await start();
    const { status, body } = await put("deploy", { ...EVENT, toolIds: ["SendUserMessage", "nowhere", "files/read"] });
    expect([status, body]).toEqual([400, { error: "webhook_tool_unavailable", details: { toolIds: ["nowhere", "files/read"] } }]);
  });

  it("413 with a body over 128 KiB, and takes one of exactly that", async () => {
    await start();
    const body = (bytes: number) => {
      const text = JSON.stringify(EVENT);
      return text + " ".repeat(bytes - text.length);
    };
    expect((await put("deploy", body(128 * 1024))).status).toBe(200);
    expect((await put("deploy", body(128 * 1024 + 1))).status).toBe(413);
  });
});

describe("GET /api/agents/:id/webhooks (2.5)", () => {
  it("an agent that was never configured has nothing, and can be given every tool of the instance", async () => {
    const run = async () => "done";
    await start({
      adapters: [
        functionTools({
          tools: [
            {
              ...{ name: "erase", description: "Erases.", inputSchema: { type: "object" }, run },
              ...{ riskLevel: "critical", requiresConfirmation: true },
            },
          ],
        }),
      ],
    });
    expect(await read()).toEqual({
      enabled: false,
      hasSecret: false,
      events: [],
      availableTools: expect.arrayContaining([
        { id: "SendUserMessage", name: "SendUserMessage", riskLevel: "low", requiresConfirmation: false },
        { id: "erase", name: "erase", riskLevel: "critical", requiresConfirmation: true },
      ]),
    });
  });

  it("never returns the secret", async () => {
    await start();
    const { secret } = (await put("deploy")).body;
    expect(JSON.stringify(await read())).not.toContain(secret);
    expect(service.readText()).not.toContain(secret);
  });
});

describe("PATCH /api/agents/:id/webhooks (3.1)", () => {
  const patch = (body: unknown) => service.manage("PATCH", "helper/webhooks", body);

  it("pauses and enables; a paused endpoint takes no triggers", async () => {
    await start();
    const { secret } = (await put("deploy")).body;
    expect((await patch({ enabled: false })).body).toEqual({ success: true, enabled: false });
    expect((await service.trigger(secret, { event: "deploy" })).status).toBe(404);
    expect((await patch({ enabled: true })).body).toEqual({ success: true, enabled: true });
    expect((await service.trigger(secret, { event: "deploy" })).status).toBe(200);
  });

  it("400 webhook_events_required without events, or without a secret", async () => {
    await start();
    expect(told(await patch({ enabled: true }))).toEqual([400, "webhook_events_required"]);
    await service.manage("POST", "helper/webhooks/secret/rotate");
    expect(told(await patch({ enabled: true }))).toEqual([400, "webhook_events_required"]);
    await service.close();
    await start({ files: { helper: { ...scriptedAgent, webhooks: { enabled: false, events: { deploy: EVENT } } } } });
    expect(told(await patch({ enabled: true }))).toEqual([400, "webhook_events_required"]);
  });

  it("what is so already stays so, and the file is not touched", async () => {
    await start();
    const before = service.readText();
    expect((await patch({ enabled: false })).body).toEqual({ success: true, enabled: false });
    expect(service.readText()).toBe(before);
  });

  it.each([{}, { enabled: "true" }, { enabled: true, more: 1 }, [], "{"])(
    "400 invalid_webhook_management_request with %j",
    async (body) => {
      await start();
      expect(told(await patch(body))).toEqual([400, "invalid_webhook_management_request"]);
    },
  );
});

describe("DELETE /api/agents/:id/webhooks/events/:event (3.1)", () => {
  const remove = (event: string) => service.manage("DELETE", `helper/webhooks/events/${event}`);

  it("deletes an event, and pauses with the last one", async () => {
    await start();
    await put("one");
    await put("two");
    expect((await remove("one")).body).toEqual({ success: true, enabled: true });
    expect((await remove("two")).body).toEqual({ success: true, enabled: false });
    expect(await read()).toMatchObject({ enabled: false, hasSecret: true, events: [] });
  });

  it("404 webhook_event_not_found for an unknown event, and 400 for an invalid name", async () => {
    await start();
    await put("deploy");
    for (const event of ["Deploy", "toString"]) expect(told(await remove(event))).toEqual([404, "webhook_event_not_found"]);
    expect(told(await remove("__proto__"))).toEqual([400, "invalid_webhook_event"]);
  });
});

describe("POST /api/agents/:id/webhooks/secret/rotate", () => {
  const rotate = (body?: unknown, type?: string) =>
    service.call(
      "owner",
      "POST",
      "/api/agents/helper/webhooks/secret/rotate",
      body,
      type === undefined ? {} : { "content-type": type },
    );

  it("returns a new secret; the old secret becomes invalid, and the endpoint stays unchanged", async () => {
    await start();
    const { secret: old } = (await put("deploy")).body;
    const { status, body } = await rotate();
    expect([status, body]).toEqual([200, { secret: expect.stringMatching(/^whs_[A-Za-z0-9_-]{43}$/) }]);
    expect(body.secret).not.toBe(old);
    expect((await service.trigger(old, { event: "deploy" })).status).toBe(401);
    expect((await service.trigger(body.secret, { event: "deploy" })).status).toBe(200);
    expect((await read()).enabled).toBe(true);
  });

  it.each([
    ["{}", "application/json"],
    ["{", "application/json"],
    ["null", "application/json"],
    ["x", "text/plain"],
    ["x".repeat(2 * 1024 * 1024), "application/json"],
  ])("400 invalid_webhook_management_request with a body (%#), and the secret stays", async (body, type) => {
    await start();
    const { secret } = (await put("deploy")).body;
    expect(told(await rotate(body, type))).toEqual([400, "invalid_webhook_management_request"]);
    expect((await service.trigger(secret, { event: "deploy" })).status).toBe(200);
  });

  it("only the digest of a secret is kept", async () => {
    await start();
    const { secret } = (await put("deploy")).body;
    await service.app.close();
    const { readdirSync, readFileSync } = await import("node:fs");
    for (const name of readdirSync(service.dataDir, { recursive: true, withFileTypes: true })) {
      if (name.isFile()) expect(readFileSync(`${name.parentPath}/${name.name}`).includes(secret)).toBe(false);
    }
  });
});

/** All calls of 4.3, each as it would succeed. */
const CALLS: readonly (readonly [method: string, path: string, body: object | undefined])[] = [
  ["GET", "webhooks", undefined],
  ["PUT", "webhooks/events/deploy", EVENT],
  ["PATCH", "webhooks", { enabled: false }],
  ["DELETE", "webhooks/events/deploy", undefined],
  ["POST", "webhooks/secret/rotate", undefined],
  ["GET", "schedule-messages", undefined],
];

describe.each(CALLS)("%s …/%s", (method, path, body) => {
  it("401 without the owner's token, 403 webhook_owner_required with another's", async () => {
    await start();
    await put("deploy");
    const before = service.readText();
    const call = (holder: Holder | undefined, headers?: Record<string, string>) =>
      service.call(holder, method, `/api/agents/helper/${path}`, body, headers);
    expect(told(await call(undefined))).toEqual([401, "unauthorized"]);
    expect(told(await call(undefined, { authorization: `Bearer ${TOKENS.owner}` }))).toEqual([401, "unauthorized"]);
    for (const holder of ["member", "service"] as const)
      expect(told(await call(holder))).toEqual([403, "webhook_owner_required"]);
    expect(service.readText()).toBe(before);
  });

  it("403 webhook_management_unavailable where webhook management is off; what is configured still triggers (4.3)", async () => {
    const webhooks = { enabled: true, events: { deploy: EVENT } };
    await start({ webhook: { management: false }, files: { helper: { ...scriptedAgent, webhooks } } });
    const before = service.readText();
    expect(told(await service.manage(method, `helper/${path}`, body))).toEqual([403, "webhook_management_unavailable"]);
    expect(service.readText()).toBe(before);
    expect((await service.trigger(TOKENS.owner, { event: "deploy" })).status).toBe(200);
  });

  it("400 invalid_agent_id, 404 agent_not_found", async () => {
    await start();
    for (const id of ["a.b", "a%20b", "a%2Fb", "x".repeat(65)])
      expect(told(await service.manage(method, `${id}/${path}`, body))).toEqual([400, "invalid_agent_id"]);
    for (const id of ["nobody", "constructor"])
      expect(told(await service.manage(method, `${id}/${path}`, body))).toEqual([404, "agent_not_found"]);
  });
});

const CHANGES = CALLS.filter(([method, path]) => method !== "GET" && !path.endsWith("rotate"));

describe("agent.json, which people edit, too (open points 5)", () => {
  it("a save keeps unknown keys and the formatting of everything else", async () => {
    const text = [
      "{",
      '\t"name" :  "Helper",',
      '\t"note": { "by": ["a",   "person"] },',
      '\t"engine": "scripted",',
      '\t"webhooks": { "events": {}, "comment": "ours" }',
      "}",
      "",
    ].join("\r\n");
    await start({ files: { helper: text } });
    expect((await put("deploy")).status).toBe(200);
    const after = service.readText();
    expect(JSON.parse(after)).toEqual({
      ...JSON.parse(text),
      webhooks: { enabled: true, comment: "ours", events: { deploy: { ...EVENT, fileScope: { userId: "owner" } } } },
    });
    const kept = text.slice(0, text.indexOf('\t"webhooks"'));
    expect(after.startsWith(kept)).toBe(true);
    expect(after.endsWith("}\r\n")).toBe(true);
    expect((await service.manage("DELETE", "helper/webhooks/events/deploy")).status).toBe(200);
    expect(service.readText().startsWith(kept)).toBe(true);
  });

  it.each<[string, string]>([
    ["no JSON", '{ "name": "Helper", }'],
    ["no object", "[]"],
    ["webhooks that are no object", JSON.stringify({ ...scriptedAgent, webhooks: [] })],
    ["an event without a template", JSON.stringify({ ...scriptedAgent, webhooks: { events: { deploy: { toolIds: [] } } } })],
    ["a forbidden name", `{ "name": "Helper", "webhooks": { "events": { "__proto__": ${JSON.stringify(EVENT)} } } }`],
  ])("409 webhook_configuration_invalid with %s, and the file is never overwritten", async (_what, text) => {
    await start({ files: { helper: text } });
    for (const [method, path, body] of CHANGES)
      expect([method, told(await service.manage(method, `helper/${path}`, body))]).toEqual([
        method,
        [409, "webhook_configuration_invalid"],
      ]);
    expect(told(await service.manage("GET", "helper/webhooks"))).toEqual([409, "webhook_configuration_invalid"]);
    expect(service.readText()).toBe(text);
  });

  it("500 webhook_management_failed where the file cannot be read or written, and the cause is logged, not told", async () => {
    await start({ files: { helper: null } });
    writeFileSync(service.agentFile(), Buffer.from([0xff, 0xfe, 0x80]));
    for (const [method, path, body] of [...CHANGES, ["GET", "webhooks", undefined] as const]) {
      const answer = await service.manage(method, `helper/${path}`, body);
      expect([method, answer.status, answer.body]).toEqual([method, 500, { error: "webhook_management_failed" }]);
    }
    expect(service.telemetry.lines.some(({ message }) => message.startsWith("agent-webhook."))).toBe(true);
  });

  it("a folder without agent.json is no agent that can be configured: 404 agent_not_found (7.3)", async () => {
    await start({ files: { helper: null } });
    expect(told(await put("deploy"))).toEqual([404, "agent_not_found"]);
    expect(told(await service.manage("GET", "helper/webhooks"))).toEqual([404, "agent_not_found"]);
  });

  it("a person's edit is seen by the next trigger and the next read", async () => {
    await start();
    const { secret } = (await put("deploy")).body;
    const agent = JSON.parse(service.readText());
    service.writeText(JSON.stringify({ ...agent, webhooks: { ...agent.webhooks, events: { other: EVENT } } }));
    await expect.poll(async () => (await read()).events.map(({ event }: { event: string }) => event)).toEqual(["other"]);
    expect((await service.trigger(secret, { event: "deploy" })).status).toBe(400);
    expect((await service.trigger(secret, { event: "other" })).status).toBe(200);
  });

  it("while a person edits all the time, every save is 200 and there, or 409 webhook_configuration_changed and not there", async () => {
    await start();
    await put("deploy");
    let edits = 0;
    const edit = setInterval(() => {
      const agent = JSON.parse(service.readText());
      service.writeText(JSON.stringify({ ...agent, edits: ++edits }));
    }, 1);
    const statuses = new Set<number>();
    try {
      for (let save = 0; save < 60; save++) {
        const { status, body } = await put("deploy", { ...EVENT, maxTurns: 1 + (save % 100) });
        statuses.add(status);
        if (status !== 200) expect([status, body]).toEqual([409, { error: "webhook_configuration_changed" }]);
      }
    } finally {
      clearInterval(edit);
    }
    expect([...statuses].every((status) => status === 200 || status === 409)).toBe(true);
    expect(JSON.parse(service.readText()).edits).toBeGreaterThan(0);
    expect((await put("deploy", { ...EVENT, maxTurns: 99 })).status).toBe(200);
    expect(JSON.parse(service.readText()).webhooks.events.deploy.maxTurns).toBe(99);
  });
});
