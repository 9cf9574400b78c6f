import { Agent, request } from "node:http";
import { once } from "node:events";
import { ports } from "@portico/core";
import { afterEach, describe, expect, it, vi } from "vitest";
import { TOKENS } from "../../harness/agent-app.ts";
import { deepList } from "../../harness/deep-json.ts";
import { cutCall } from "../../harness/raw-call.ts";
import {
  scriptedAgent,
  startWebhookService,
  type WebhookService,
  type WebhookServiceOptions,
} from "../../harness/webhook-app.ts";

const EVENT = { promptTemplate: "Deploy {{version}}", toolIds: [], maxTurns: 5 };
const configured = (more: object = {}) => ({ ...scriptedAgent, webhooks: { enabled: true, events: { deploy: EVENT } }, ...more });
const scopedTo = (userId: string) => ({ enabled: true, events: { deploy: { ...EVENT, fileScope: { userId } } } });
const MIB = 1024 * 1024;

let service: WebhookService;
let secret: string;
afterEach(() => service?.close());

async function start(options: WebhookServiceOptions = {}): Promise<void> {
  service = await startWebhookService({ files: { helper: configured(), other: scriptedAgent }, ...options });
  secret = (await service.manage("POST", "helper/webhooks/secret/rotate")).body.secret;
}
const told = ({ status, body }: { readonly status: number; readonly body: any }) => [status, body.error];
const deploy = { event: "deploy", payload: { version: "1.2" } };

describe("POST /api/webhook/:agent_id (4.4)", () => {
  it("200 with accepted, agentId and event, and nothing else; the agent works on the filled-in prompt", async () => {
    await start();
    const { status, body } = await service.trigger(secret, deploy);
    expect([status, body]).toEqual([200, { accepted: true, agentId: "helper", event: "deploy" }]);
    await expect.poll(() => service.engine.played).toEqual(["Deploy 1.2"]);
  });

  it("an omitted payload is an empty object: placeholders stay", async () => {
    await start();
    expect((await service.trigger(secret, { event: "deploy" })).status).toBe(200);
    await expect.poll(() => service.engine.played).toEqual(["Deploy {{version}}"]);
  });

  it("the same event twice is executed twice, without deduplication", async () => {
    await start();
    await Promise.all([service.trigger(secret, deploy), service.trigger(secret, deploy)]);
    await expect.poll(() => service.engine.played).toEqual(["Deploy 1.2", "Deploy 1.2"]);
  });

  it.each<[string, unknown]>([
    ["a list", []],
    ["a text", '"deploy"'],
    ["null", "null"],
    ["no event", {}],
    ["an event that is no text", { event: 7 }],
    ["a payload that is a list", { event: "deploy", payload: [] }],
    ["a payload that is a text", { event: "deploy", payload: "x" }],
    ["a payload that is null", { event: "deploy", payload: null }],
    ["another field", { event: "deploy", id: "1" }],
    ["another field called __proto__", '{"event":"deploy","__proto__":{}}'],
  ])("400 invalid request body with %s", async (_what, body) => {
    await start();
    expect(told(await service.trigger(secret, body))).toEqual([400, "Invalid request body"]);
  });

  it.each(["", "{", "deploy", '{"event":"deploy",}', "\u0000"])("400 'Invalid JSON' with %j", async (body) => {
    await start();
    expect(told(await service.trigger(secret, body))).toEqual([400, "Invalid JSON"]);
  });

  it.each(["Deploy", "deploy ", "", "constructor", "__proto__", "toString"])(
    "400 'Unknown event type: …' with %j",
    async (event) => {
      await start();
      expect(told(await service.trigger(secret, { event }))).toEqual([400, `Unknown event type: ${event}`]);
    },
  );

  it("repeats no more of an unknown event's name than a name can have", async () => {
    await start();
    const { body } = await service.trigger(secret, { event: "x".repeat(100_000) });
    expect(body.error).toBe(`Unknown event type: ${"x".repeat(128)}…`);
  });

  it.each([undefined, "", "wrong", TOKENS.owner, TOKENS.member])(
    "401 'Invalid webhook secret' with bearer %j",
    async (bearer) => {
      await start();
      expect(told(await service.trigger(bearer, deploy))).toEqual([401, "Invalid webhook secret"]);
    },
  );

  it("the secret counts as a bearer token alone", async () => {
    await start();
    const ways: readonly Record<string, string>[] = [
      { "x-api-key": secret },
      { "x-agent-service-token": secret },
      { authorization: `Basic ${secret}` },
    ];
    for (const headers of ways) {
      const sent = { "content-type": "application/json", ...headers };
      expect(told(await service.call(undefined, "POST", "/api/webhook/helper", deploy, sent))).toEqual([
        401,
        "Invalid webhook secret",
      ]);
    }
    expect(told(await service.call(undefined, "POST", `/api/webhook/helper?secret=${secret}`, deploy))).toEqual([
      401,
      "Invalid webhook secret",
    ]);
  });

  it("the secret of one agent is not valid for another agent", async () => {
    await start({ files: { helper: configured(), other: configured() } });
    await service.manage("POST", "other/webhooks/secret/rotate");
    expect(told(await service.trigger(secret, deploy, "other"))).toEqual([401, "Invalid webhook secret"]);
  });

  it("the secret grants triggering only: no management, no receipts, nothing else (5, rule 4)", async () => {
    await start();
    for (const path of ["/api/agents/helper/webhooks", "/api/agents/helper/schedule-messages", "/api/runs", "/api/handshake"]) {
      const ways: readonly Record<string, string>[] = [
        { "x-agent-service-token": secret },
        { authorization: `Bearer ${secret}` },
      ];
      for (const headers of ways) {
        expect((await service.call(undefined, "GET", path, undefined, headers)).status).toBe(401);
      }
    }
  });

  it.each(["nobody", "../helper", "%2e%2e", "a b", "x".repeat(65), "constructor"])(
    "404 'Agent not found' for %j",
    async (agentId) => {
      await start();
      expect(told(await service.trigger(secret, deploy, encodeURIComponent(agentId)))).toEqual([404, "Agent not found"]);
    },
  );

  it("404 'Webhook not enabled for this agent' where it is paused, was never configured, or has no events", async () => {
    await start({
      files: {
        helper: configured({ webhooks: { enabled: false, events: { deploy: EVENT } } }),
        never: scriptedAgent,
        empty: configured({ webhooks: { enabled: true, events: {} } }),
        bare: null,
      },
    });
    expect(told(await service.trigger(secret, deploy))).toEqual([404, "Webhook not enabled for this agent"]);
    for (const agentId of ["never", "empty", "bare"])
      expect(told(await service.trigger(TOKENS.owner, deploy, agentId))).toEqual([404, "Webhook not enabled for this agent"]);
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""])(
    "415 'Unsupported media type' with %j",
    async (type) => {
      await start();
      const headers = { "content-type": type, authorization: `Bearer ${secret}` };
      expect(told(await service.call(undefined, "POST", "/api/webhook/helper", deploy, headers))).toEqual([
        415,
        "Unsupported media type",
      ]);
    },
  );

  it("takes a charset beside application/json", async () => {
    await start();
    const headers = { "content-type": "application/json; charset=utf-8", authorization: `Bearer ${secret}` };
    expect((await service.call(undefined, "POST", "/api/webhook/helper", deploy, headers)).status).toBe(200);
  });

  it("takes a body of exactly 1 MiB, and 413 'Request body too large' with one byte more", async () => {
    await start();
    const empty = JSON.stringify({ event: "deploy", payload: { text: "" } });
    const body = (bytes: number) => JSON.stringify({ event: "deploy", payload: { text: "x".repeat(bytes - empty.length) } });
    expect((await service.trigger(secret, body(MIB))).status).toBe(200);
    expect(told(await service.trigger(secret, body(MIB + 1)))).toEqual([413, "Request body too large"]);
  });

  it("refuses a body over 1 MiB while it streams: the answer comes before the end", async () => {
    await start();
    const call = request(`${service.url}/api/webhook/helper`, {
      method: "POST",
      agent: new Agent(),
      headers: { "content-type": "application/json", authorization: `Bearer ${secret}`, "transfer-encoding": "chunked" },
    });
    call.on("error", () => {});
    const answered = once(call, "response");
    call.write(`{"event":"deploy","payload":{"text":"${"x".repeat(MIB)}`);
    const [response] = await answered;
    expect(response.statusCode).toBe(413);
    call.destroy();
  });

  it.each([
    ["that is no JSON", "{", 500],
    ["whose webhooks break their schema", JSON.stringify(configured({ webhooks: { enabled: "yes" } })), 500],
    ["with a user in whose name no run can be kept", JSON.stringify(configured({ webhooks: scopedTo("a\0b") })), 500],
    ["that is no agent's", JSON.stringify({ ...configured(), name: 7 }), 500],
  ])("500 'Failed to parse agent.json' with a file %s, and only for who may trigger", async (_what, text, status) => {
    await start();
    service.writeText(text);
    await expect.poll(async () => told(await service.trigger(secret, deploy))).toEqual([status, "Failed to parse agent.json"]);
    expect(told(await service.trigger("wrong", deploy))).toEqual([401, "Invalid webhook secret"]);
    expect(service.readText()).toBe(text);
  });

  it("a payload that would make a prompt over 4 Mi characters is 413, and executes nothing", async () => {
    await start({
      files: {
        helper: configured({
          webhooks: { enabled: true, events: { deploy: { ...EVENT, promptTemplate: "{{a}}".repeat(6000) } } },
        }),
      },
    });
    const refused = await service.trigger(secret, { event: "deploy", payload: { a: "x".repeat(1_000_000) } });
    expect(told(refused)).toEqual([413, "Request body too large"]);
    expect(service.engine.played).toEqual([]);
  });

  it("a payload that nests deeper than bodies may is 400, whether the template asks for it or not", async () => {
    await start({
      files: {
        helper: configured({
          webhooks: { enabled: true, events: { deploy: EVENT, all: { ...EVENT, promptTemplate: "{{a}}" } } },
        }),
      },
    });
    const deep = (event: string, levels: number) => `{"event":"${event}","payload":{"a":${deepList(levels - 2)}}}`;
    for (const event of ["all", "deploy"]) {
      expect((await service.trigger(secret, deep(event, 512))).status).toBe(200);
      for (const levels of [513, 5_000, 100_000]) {
        expect(told(await service.trigger(secret, deep(event, levels)))).toEqual([400, "Invalid request body"]);
      }
    }
  });

  it("405 for other methods, with Allow", async () => {
    await start();
    const { status, headers } = await service.call(undefined, "GET", "/api/webhook/helper");
    expect([status, headers["allow"]]).toEqual([405, "POST"]);
  });

  it("a sender that leaves in the middle of its body starts nothing", async () => {
    await start();
    const head = `POST /api/webhook/helper HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nauthorization: Bearer ${secret}\r\n`;
    await cutCall(service.url, `${head}content-length: 100\r\n\r\n${JSON.stringify(deploy)}`);
    await expect.poll(() => service.telemetry.requests.filter(({ route }) => route === "agent-webhook.trigger")).toHaveLength(1);
    expect((await service.trigger(secret, { event: "deploy", payload: { version: "after" } })).status).toBe(200);
    await expect.poll(() => service.engine.played).toEqual(["Deploy after"]);
  });
});

describe("an event that cannot be made durable", () => {
  it.each([new ports.EngineUnavailable("The disk is full"), new ports.EngineFenced("Another process has the work")])(
    "is 503 and not accepted with %o, and neither its payload nor the secret is logged",
    async (error) => {
      await start();
      vi.spyOn(service.app.port(ports.engine), "start").mockRejectedValueOnce(error);
      const refused = await service.trigger(secret, { event: "deploy", payload: { version: "do-not-log" } });
      expect(told(refused)).toEqual([503, "The event could not be accepted: send it again later"]);
      const logged = JSON.stringify([service.telemetry.lines, service.telemetry.requests]);
      expect(logged).toContain("agent-webhook.trigger");
      for (const hidden of ["do-not-log", secret]) expect(logged).not.toContain(hidden);
      expect((await service.trigger(secret, deploy)).status).toBe(200);
      await expect.poll(() => service.engine.played).toEqual(["Deploy 1.2"]);
    },
  );
});

it("503 if the secret cannot be checked now: no event is accepted, from any sender", async () => {
  await start();
  const secrets = service.app.port(ports.records).collection({ name: "webhook-secrets" });
  const get = vi.spyOn(secrets, "get").mockRejectedValue(new ports.RecordsUnavailable("The disk is gone"));
  for (const bearer of [secret, "wrong"])
    expect(told(await service.trigger(bearer, deploy))).toEqual([503, "The event could not be accepted: send it again later"]);
  get.mockRestore();
  expect(service.engine.played).toEqual([]);
  expect((await service.trigger(secret, deploy)).status).toBe(200);
});

describe("the order of the checks (open points 5)", () => {
  const broken = { type: "text/plain", body: "x".repeat(MIB + 1), bearer: "wrong", agent: "nobody" };
  const right = { type: "application/json", body: JSON.stringify(deploy), bearer: "", agent: "helper" };
  const expected = ["agent", "type", "body", "bearer"] as const;
  const answers = { agent: 404, type: 415, body: 413, bearer: 401 };

  it.each(expected)("%s comes before everything behind it", async (first) => {
    await start();
    const from = expected.indexOf(first);
    const sent = { ...right, bearer: secret };
    for (const each of expected.slice(from)) sent[each] = broken[each];
    const headers = { "content-type": sent.type, authorization: `Bearer ${sent.bearer}` };
    const { status } = await service.call(undefined, "POST", `/api/webhook/${sent.agent}`, sent.body, headers);
    expect(status).toBe(answers[first]);
  });

  const send = async (bearer: string, body: string | Buffer) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${bearer}` };
    const reply = await service.raw({ method: "POST", path: "/api/webhook/helper", headers, body });
    return { status: reply.status, body: JSON.parse(await reply.text()) };
  };

  it("secret, enabled, JSON, shape, event", async () => {
    await start({ files: { helper: configured({ webhooks: { enabled: false, events: { deploy: EVENT } } }) } });
    const notUtf8 = Buffer.from([0x22, 0xff, 0x22]);
    for (const body of ["{", notUtf8]) {
      expect((await send("wrong", body)).status).toBe(401);
      expect(told(await send(secret, body))).toEqual([404, "Webhook not enabled for this agent"]);
    }
    await service.manage("PATCH", "helper/webhooks", { enabled: true });
    for (const body of ["{", notUtf8]) expect(told(await send(secret, body))).toEqual([400, "Invalid JSON"]);
    expect(told(await service.trigger(secret, { event: "unknown", more: 1 }))).toEqual([400, "Invalid request body"]);
    expect(told(await service.trigger(secret, { event: "unknown" }))).toEqual([400, "Unknown event type: unknown"]);
  });

  it("an unauthenticated caller learns no event names", async () => {
    await start();
    const known = await service.trigger("wrong", { event: "deploy" });
    const unknown = await service.trigger("wrong", { event: "unknown" });
    expect(known.body).toEqual(unknown.body);
  });
});

describe("an agent without a secret (5, rule 4; open points 5)", () => {
  const startWithout = async (mode: "local" | "remote") => {
    service = await startWebhookService({ files: { helper: configured() }, webhook: { mode } });
  };

  it("local: the instance access token triggers it, and 401 'Invalid embedded instance token' otherwise", async () => {
    await startWithout("local");
    for (const bearer of [undefined, "", "wrong", TOKENS.member, TOKENS.service])
      expect(told(await service.trigger(bearer, deploy))).toEqual([401, "Invalid embedded instance token"]);
    expect((await service.trigger(TOKENS.owner, deploy)).status).toBe(200);
    await expect.poll(() => service.engine.played).toEqual(["Deploy 1.2"]);
  });

  it("local: once there is a secret, the instance access token does not do any more", async () => {
    await startWithout("local");
    await service.manage("POST", "helper/webhooks/secret/rotate");
    expect(told(await service.trigger(TOKENS.owner, deploy))).toEqual([401, "Invalid webhook secret"]);
  });

  it("remote: 403 webhook_secret_required, with any bearer token", async () => {
    await startWithout("remote");
    for (const bearer of [undefined, "wrong", TOKENS.owner])
      expect(told(await service.trigger(bearer, deploy))).toEqual([403, "webhook_secret_required"]);
  });
});
