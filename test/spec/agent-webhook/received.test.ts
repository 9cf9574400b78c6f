import { createManualClock } from "@portico/adapters/clock/manual";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fromGithub, type SentNotification } from "../../harness/signed-notifications.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { startWebhookService, type WebhookService } from "../../harness/webhook-app.ts";

let folder: ReturnType<typeof temporaryFolder>;
let service: WebhookService;
let secret: string;
let github: string;
beforeEach(async () => {
  folder = temporaryFolder();
  service = await startWebhookService({ dataDir: folder.path });
  secret = await service.save("deploy", "Deployed {{version}}");
  const sender = await service.manage("PUT", "helper/webhooks/senders/github", {
    kind: "github",
    events: { push: "deploy" },
  });
  github = sender.body.secret;
});
afterEach(async () => {
  await service.close();
  folder.remove();
});

const received = async (query = "", holder: "owner" | "member" = "owner") =>
  service.manage("GET", `helper/webhooks/received${query}`, undefined, holder);
const items = async (query = ""): Promise<any[]> => (await received(query)).body.items;
const send = ({ headers, body }: SentNotification) =>
  service.call(undefined, "POST", "/api/webhook/helper/github", body, headers);

describe("the list of received events", () => {
  it("has each accepted event with its run, and how often its sender sent it, also after a restart", async () => {
    await service.trigger(secret, { event: "deploy", payload: { version: "secret-1" } });
    const push = await fromGithub(github, "push", { ref: "secret-2" });
    await send(push);
    await send(push);
    // Accepted events are listed within a second.
    await expect.poll(async () => (await items("?status=accepted")).map(({ count }) => count)).toEqual([2, 1]);
    const [fromSender, triggered] = await items("?status=accepted");
    expect(fromSender).toMatchObject({ status: "accepted", event: "deploy", sender: "github", count: 2 });
    expect(triggered).toMatchObject({ status: "accepted", event: "deploy", count: 1 });
    expect("sender" in triggered).toBe(false);
    // A run is listed when a process of the cluster has begun it.
    const listed = async () => {
      const { runs } = (await service.call("owner", "GET", "/api/runs")).body;
      return runs.map(({ run_id: id }: { run_id: string }) => id).toSorted();
    };
    await expect.poll(listed).toEqual([fromSender.runId, triggered.runId].toSorted());
    const before = await items();
    expect(JSON.stringify(before)).not.toContain("secret-");
    await service.close();
    service = await startWebhookService({ dataDir: folder.path, files: {} });
    expect(await items()).toEqual(before);
  });

  it("has refusals with their reason, and events that the sender does not map", async () => {
    await service.trigger("wrong", { event: "deploy" });
    await service.trigger(secret, { event: "unknown" });
    await send(await fromGithub("another secret", "push", {}));
    await send(await fromGithub(github, "ping", {}));
    await expect.poll(async () => (await items()).length).toBe(4);
    const reasons = async (status: string) => (await items(`?status=${status}`)).map(({ reason, sender }) => [reason, sender]);
    expect((await reasons("refused")).toSorted()).toEqual([
      ["invalid_signature", "github"],
      ["invalid_webhook_secret", undefined],
      ["unknown_event", undefined],
    ]);
    expect(await items("?status=ignored")).toEqual([expect.objectContaining({ reason: "not_mapped", event: "ping" })]);
  });

  it("counts a flood of refused events in one record, which pushes out no accepted event", async () => {
    await service.trigger(secret, { event: "deploy" });
    for (let count = 0; count < 25; count++) await service.trigger(`wrong ${count}`, { event: `event ${count}` });
    // Counts that are not written yet are written when the service stops.
    await service.close();
    service = await startWebhookService({ dataDir: folder.path, files: {} });
    const all = await items();
    // Of two hours, if one began meanwhile.
    const refused = all.filter(({ status }) => status === "refused");
    expect(refused.length).toBeLessThanOrEqual(2);
    expect(refused.reduce((sum, { count }) => sum + count, 0)).toBe(25);
    expect(all.filter(({ status }) => status === "accepted")).toHaveLength(1);
  });

  it("writes the count of refused events every 10 s, with their first and last time", async () => {
    await service.close();
    const clock = createManualClock({ startAt: "2030-01-01T10:00:00.000Z" });
    const restart = async () => {
      service = await startWebhookService({ dataDir: folder.path, files: {}, clock });
    };
    await restart();
    const refused = async () => {
      const [only, ...more] = await items("?status=refused");
      expect(more).toEqual([]);
      return only && { count: only.count, firstAt: only.firstAt.slice(11, 19), at: only.at.slice(11, 19) };
    };
    // One process of a cluster gets them all.
    const { fetch } = service.apps[0]!.surface("agent");
    const headers = { "content-type": "application/json", authorization: "Bearer wrong" };
    const request = { method: "POST", headers, body: JSON.stringify({ event: "deploy" }) };
    const refuse = async () => (await fetch(new Request("http://localhost/api/webhook/helper", request))).body?.cancel();
    await refuse();
    await expect.poll(refused).toEqual({ count: 1, firstAt: "10:00:00", at: "10:00:00" });
    for (let count = 0; count < 3; count++) {
      await clock.advance(1000);
      await refuse();
    }
    expect(await refused()).toMatchObject({ count: 1 });
    await clock.advance(7000);
    await expect.poll(refused).toEqual({ count: 4, firstAt: "10:00:00", at: "10:00:03" });
  });

  it("keeps the newest 200 records of refused events of an agent, and all for 30 days", async () => {
    await service.close();
    const clock = createManualClock({ startAt: "2030-01-01T10:00:00.000Z" });
    service = await startWebhookService({ dataDir: folder.path, files: {}, clock });
    await service.trigger(secret, { event: "deploy" });
    for (let hour = 0; hour < 205; hour++) {
      await service.trigger("wrong", { event: "deploy" });
      await clock.jump(60 * 60_000);
    }
    await expect
      .poll(async () => {
        await clock.jump(60 * 60_000);
        return (await received("?status=refused&limit=200")).body;
      })
      .toEqual({ items: expect.toSatisfy((all: unknown[]) => all.length === 200) });
    expect(await items("?status=accepted")).toHaveLength(1);
    await clock.jump(31 * 24 * 60 * 60_000);
    await expect
      .poll(async () => {
        await clock.jump(60 * 60_000);
        return items();
      })
      .toEqual([]);
  });

  it("notes nothing for an agent or a sender that does not exist, except that the sender is unknown", async () => {
    await service.trigger("wrong", { event: "deploy" }, "none");
    for (const name of ["a", "b"])
      await service.call(undefined, "POST", `/api/webhook/helper/${name}`, "{}", { "content-type": "application/json" });
    await expect.poll(async () => (await items()).length).toBe(1);
    expect((await items())[0]).toMatchObject({ reason: "sender_not_found" });
    expect("sender" in (await items())[0]).toBe(false);
  });

  it("has pages, and refuses an unknown cursor, status or limit", async () => {
    for (let count = 0; count < 3; count++) await service.trigger(secret, { event: "deploy" });
    await expect.poll(async () => (await items()).length).toBe(3);
    const first = (await received("?limit=2")).body;
    const second = (await received(`?limit=2&cursor=${encodeURIComponent(first.cursor)}`)).body;
    expect(first.items).toHaveLength(2);
    expect(new Set([...first.items, ...second.items].map(({ runId }: { runId: string }) => runId)).size).toBe(3);
    for (const query of ["?cursor=x", "?status=none", "?limit=0", "?limit=201"])
      expect(await received(query)).toMatchObject({ status: 400, body: { error: "invalid_webhook_management_request" } });
  });

  it("is the owner's alone, and of agents that exist", async () => {
    expect(await received("", "member")).toMatchObject({ status: 403, body: { error: "webhook_owner_required" } });
    expect(await service.manage("GET", "none/webhooks/received")).toMatchObject({
      status: 404,
      body: { error: "agent_not_found" },
    });
  });
});
