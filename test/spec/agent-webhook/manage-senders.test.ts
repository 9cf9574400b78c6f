import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createManualClock } from "@portico/adapters/clock/manual";
import { ports, Secret } from "@portico/core";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { fromGithub, fromStandard, fromStripe, type SentNotification } from "../../harness/signed-notifications.ts";
import { startWebhookService, type WebhookService, type WebhookServiceOptions } from "../../harness/webhook-app.ts";

let service: WebhookService;
afterEach(() => service?.close());

const SENDERS = "helper/webhooks/senders";
const events = { push: "deploy" };
const stripe = { kind: "stripe", events: { "invoice.paid": "deploy" }, secret: "whsec_first" };
const told = ({ status, body }: { readonly status: number; readonly body: any }) => [status, body.error];

async function start(options: WebhookServiceOptions = {}): Promise<void> {
  service = await startWebhookService(options);
  await service.save("deploy", "Deploy {{id}}");
}
const save = (sender: string, body: object) => service.manage("PUT", `${SENDERS}/${sender}`, body);
const send = async (sender: string, { headers, body }: SentNotification) =>
  (await service.call(undefined, "POST", `/api/webhook/helper/${sender}`, body, headers)).status;
const paid = (id: string, secret: string) => fromStripe(secret, { id, type: "invoice.paid" });

describe("PUT /api/agents/:id/webhooks/senders/:sender", () => {
  it("answers the secret that it makes once, for GitHub and Standard Webhooks, and the path for the sender", async () => {
    await start();
    const github = await save("my-repository", { kind: "github", events });
    expect([github.status, github.body]).toEqual([
      200,
      {
        success: true,
        sender: "my-repository",
        path: "/api/webhook/helper/my-repository",
        secret: expect.stringMatching(/^[\w-]{43}$/),
      },
    ]);
    expect(await send("my-repository", await fromGithub(github.body.secret, "push", { id: 1 }))).toBe(200);
    const standard = await save("clerk", { kind: "standard", events });
    expect(standard.body.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(await send("clerk", fromStandard(standard.body.secret, { type: "push" }))).toBe(200);
    expect((await save("clerk", { kind: "standard", events })).body).not.toHaveProperty("secret");
  });

  it("keeps the secret when only the events change, and replaces it with a given one", async () => {
    await start();
    expect((await save("billing", stripe)).body).toEqual({
      success: true,
      sender: "billing",
      path: "/api/webhook/helper/billing",
    });
    const { secret: _secret, ...others } = stripe;
    expect((await save("billing", { ...others, events: { "invoice.paid": "deploy", "charge.failed": "deploy" } })).status).toBe(
      200,
    );
    expect(await send("billing", fromStripe("whsec_first", { id: "1", type: "charge.failed" }))).toBe(200);
    await save("billing", { ...stripe, secret: "whsec_second" });
    expect([await send("billing", paid("2", "whsec_first")), await send("billing", paid("2", "whsec_second"))]).toEqual([
      401, 200,
    ]);
  });

  it("400 webhook_sender_secret_required where the vendor makes the secret, also when the kind changes", async () => {
    await start();
    const required = [400, "webhook_sender_secret_required"];
    expect(told(await save("billing", { kind: "stripe", events }))).toEqual(required);
    expect(told(await save("chat", { kind: "slack", events }))).toEqual(required);
    await save("billing", stripe);
    expect(told(await save("billing", { kind: "slack", events }))).toEqual(required);
    expect((await save("billing", { kind: "github", events })).body.secret).toEqual(expect.any(String));
  });

  it.each<[string, object]>([
    ["another kind", { ...stripe, kind: "gitlab" }],
    ["no events", { ...stripe, events: {} }],
    ["too many events", { ...stripe, events: Object.fromEntries(Array.from({ length: 257 }, (_, at) => [`e${at}`, "deploy"])) }],
    ["a name with a space", { ...stripe, events: { "invoice paid": "deploy" } }],
    ["a name that is too long", { ...stripe, events: { ["x".repeat(129)]: "deploy" } }],
    ["a name that objects inherit", { ...stripe, events: { constructor: "deploy" } }],
    ["an event that cannot be one", { ...stripe, events: { push: "no name" } }],
    ["an empty secret", { ...stripe, secret: "" }],
    ["a secret that is too long", { ...stripe, secret: "x".repeat(513) }],
    ["a secret of Standard Webhooks that is not Base64", { kind: "standard", events, secret: "whsec_%%" }],
    ["another field", { ...stripe, enabled: true }],
  ])("400 invalid_webhook_management_request with %s, and nothing is stored", async (_what, body) => {
    await start();
    expect(told(await save("billing", body))).toEqual([400, "invalid_webhook_management_request"]);
    expect((await service.manage("GET", SENDERS)).body).toEqual({ items: [] });
  });

  it("404 webhook_event_not_found for events that the agent does not have, with their names", async () => {
    await start();
    const answer = await save("billing", { ...stripe, events: { a: "deploy", b: "missing", c: "missing" } });
    expect([answer.status, answer.body]).toEqual([404, { error: "webhook_event_not_found", details: { events: ["missing"] } }]);
  });

  it.each(["Billing", "-a", "a_b", "a.b", "s".repeat(65), "%00"])(
    "400 invalid_webhook_sender for the name %s",
    async (sender) => {
      await start();
      const invalid = [400, "invalid_webhook_sender"];
      expect(told(await save(sender, stripe))).toEqual(invalid);
      expect(told(await service.manage("DELETE", `${SENDERS}/${sender}`))).toEqual(invalid);
      expect(told(await service.manage("POST", `${SENDERS}/${sender}/secret/rotate`))).toEqual(invalid);
    },
  );

  it("400 too_many_webhook_senders for the 33rd of an agent; the others can still be replaced", async () => {
    await start();
    for (let at = 1; at <= 32; at++) expect((await save(`s${at}`, stripe)).status).toBe(200);
    expect(told(await save("s33", stripe))).toEqual([400, "too_many_webhook_senders"]);
    expect((await save("s32", stripe)).status).toBe(200);
  });

  it("of simultaneous calls that create a sender, one receives its secret; the others get 409, or change nothing", async () => {
    await start();
    const answers = await Promise.all(Array.from({ length: 5 }, () => save("a", { kind: "github", events })));
    for (const { status, body } of answers.filter(({ status }) => status !== 200))
      expect([status, body.error]).toEqual([409, "webhook_configuration_changed"]);
    const made = answers.flatMap(({ body }) => body.secret ?? []);
    expect(made).toHaveLength(1);
    expect(await send("a", await fromGithub(made[0], "push", { id: 1 }))).toBe(200);
  });
});

describe("GET /api/agents/:id/webhooks/senders", () => {
  it("lists the senders of this agent by name, without their secrets", async () => {
    await start({ files: { helper: { name: "Helper", engine: "scripted" }, other: { name: "Other", engine: "scripted" } } });
    await save("stripe", stripe);
    await save("billing", stripe);
    const item = (sender: string) => ({ sender, kind: "stripe", path: `/api/webhook/helper/${sender}`, events: stripe.events });
    expect((await service.manage("GET", SENDERS)).body).toEqual({ items: [item("billing"), item("stripe")] });
    expect((await service.manage("GET", "other/webhooks/senders")).body).toEqual({ items: [] });
  });
});

describe("POST /api/agents/:id/webhooks/senders/:sender/secret/rotate", () => {
  it("makes a new secret, or takes the given one; the former stays valid for a day", async () => {
    const clock = createManualClock({ startAt: new Date().toISOString() });
    await start({ clock });
    await save("billing", stripe);
    expect(told(await service.manage("POST", `${SENDERS}/billing/secret/rotate`))).toEqual([
      400,
      "webhook_sender_secret_required",
    ]);
    const rotate = (secret: string) => service.manage("POST", `${SENDERS}/billing/secret/rotate`, { secret });
    expect((await rotate("whsec_second")).body).toEqual({ success: true });
    expect([await send("billing", paid("1", "whsec_first")), await send("billing", paid("2", "whsec_second"))]).toEqual([
      200, 200,
    ]);
    await rotate("whsec_third");
    expect(await send("billing", paid("3", "whsec_first"))).toBe(401);
    expect(await send("billing", paid("3", "whsec_second"))).toBe(200);
    const tomorrow = Date.now() + 24 * 60 * 60_000;
    await clock.jump(tomorrow - clock.now());
    const later = (id: string, secret: string) => fromStripe(secret, { id, type: "invoice.paid" }, Math.floor(tomorrow / 1000));
    expect([await send("billing", later("4", "whsec_second")), await send("billing", later("4", "whsec_third"))]).toEqual([
      401, 200,
    ]);
  });

  it("ends the former at once with keepFormer false", async () => {
    await start();
    const { body } = await save("repository", { kind: "github", events });
    const rotated = await service.manage("POST", `${SENDERS}/repository/secret/rotate`, { keepFormer: false });
    expect(await send("repository", await fromGithub(body.secret, "push", { id: 1 }))).toBe(401);
    expect(await send("repository", await fromGithub(rotated.body.secret, "push", { id: 1 }))).toBe(200);
  });

  it("404 webhook_sender_not_found for an unknown sender, as for its deletion", async () => {
    await start();
    const missing = [404, "webhook_sender_not_found"];
    expect(told(await service.manage("POST", `${SENDERS}/missing/secret/rotate`))).toEqual(missing);
    expect(told(await service.manage("DELETE", `${SENDERS}/missing`))).toEqual(missing);
  });
});

describe("DELETE /api/agents/:id/webhooks/senders/:sender", () => {
  it("refuses its notifications from then on; one that is created again does not have the old secret", async () => {
    await start();
    const { body } = await save("repository", { kind: "github", events });
    expect((await service.manage("DELETE", `${SENDERS}/repository`)).body).toEqual({ success: true });
    const sent = await fromGithub(body.secret, "push", { id: 1 });
    expect(await send("repository", sent)).toBe(404);
    await save("repository", { kind: "github", events });
    expect(await send("repository", sent)).toBe(401);
  });
});

it("secrets are stored sealed, and neither the log nor the audit holds them", async () => {
  await start();
  await save("billing", { ...stripe, secret: "whsec_very_secret_value" });
  await send("billing", paid("1", "whsec_very_secret_value"));
  await send("billing", paid("1", "wrong"));
  const stored = readdirSync(service.dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("");
  expect(stored).not.toContain("whsec_very_secret_value");
  expect(JSON.stringify(service.telemetry.lines)).not.toContain("whsec_very_secret_value");
});

describe("after the instance key was changed", () => {
  const [first, second] = [1, 2].map((byte) => new Secret(Buffer.alloc(32, byte).toString("base64url"))) as [Secret, Secret];
  const folder = temporaryFolder();
  afterAll(() => folder.remove());
  const open = async (options: Partial<WebhookServiceOptions>) => {
    service = await startWebhookService({ dataDir: folder.path, files: {}, ...options });
  };
  const senders = () =>
    service.app
      .port(ports.records)
      .collection<{ sealed: string }>({ name: "webhook-senders", indexes: { by_agent: ["agentId"] } });
  const sent = () => send("billing", paid(randomUUID(), "whsec_first"));

  it("secrets are sealed again within a minute, so that the earlier key can be taken away; one that cannot be opened has to be set again", async () => {
    service = await startWebhookService({ dataDir: folder.path, sealing: { key: first } });
    await service.save("deploy", "Deploy {{id}}");
    await save("billing", stripe);
    await save("another", stripe);
    // It comes first, and cannot be opened.
    const broken = (await senders().get("helper/another"))!.value;
    await senders().put("helper/another", { ...broken, sealed: broken.sealed.replace(/^v1\.[^.]+/, "v1.AAAAAAAAAAA") });
    await service.close();

    const clock = createManualClock({ startAt: new Date().toISOString() });
    await open({ sealing: { key: second, otherKeys: [first] }, clock });
    const version = async () => (await senders().get("helper/billing"))!.version;
    const before = await version();
    await expect.poll(async () => (await clock.advance(10_000), await version()), { timeout: 20_000 }).toBeGreaterThan(before);
    await service.close();

    await open({ sealing: { key: second } });
    expect(await sent()).toBe(200);
    expect(await send("another", paid("1", "whsec_first"))).toBe(500);
    await save("another", stripe);
    expect(await send("another", paid("1", "whsec_first"))).toBe(200);
  });
});

it("a delivery is known also after the engine has forgotten its turn", async () => {
  const clock = createManualClock({ startAt: new Date().toISOString() });
  await start({ clock, durable: { keepEndedMs: 60_000 } });
  const { body } = await save("repository", { kind: "github", events });
  const notification = await fromGithub(body.secret, "push", { id: 1 });
  const answer = async () =>
    (await service.call(undefined, "POST", "/api/webhook/helper/repository", notification.body, notification.headers)).body;
  const accepted = { accepted: true, agentId: "helper", event: "deploy" };
  expect(await answer()).toEqual(accepted);
  await expect.poll(() => service.engine.played).toEqual(["Deploy 1"]);
  await clock.jump(10 * 60_000);
  expect(await answer()).toEqual({ ...accepted, duplicate: true });
  expect(service.engine.played).toEqual(["Deploy 1"]);
});
