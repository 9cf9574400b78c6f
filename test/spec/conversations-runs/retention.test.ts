import { createManualClock } from "@portico/adapters/clock/manual";
import { ports } from "@portico/core";
import { createTurnWaits } from "../../../plugins/src/conversations-runs/approvals/turn-waits.ts";
import { createDeliveries } from "../../../plugins/src/conversations-runs/background/deliveries.ts";
import { createConversations } from "../../../plugins/src/conversations-runs/conversations/conversations.ts";
import { createRemovedRuns } from "../../../plugins/src/conversations-runs/retention/removed-runs.ts";
import { createRuns } from "../../../plugins/src/conversations-runs/runs/runs.ts";
import { createSweepRuns } from "../../../plugins/src/conversations-runs/retention/sweep-runs.ts";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type AgentClient, type AgentService, type AgentServiceOptions, startAgentService } from "../../harness/agent-app.ts";
import { createGate } from "../../harness/gate.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const LOOK_AGAIN_MS = 61_000;

let folder: ReturnType<typeof temporaryFolder>;
let service: AgentService;
let clock: ReturnType<typeof createManualClock>;
beforeEach(async () => {
  folder = temporaryFolder();
  await start(0);
});
afterEach(async () => {
  await service.close();
  folder.remove();
});

/** A process on the stores of the ones before, that keeps runs for two days; its clock advances only when the test says so. */
async function start(at: number, options: AgentServiceOptions = {}) {
  clock = createManualClock({ startAt: new Date(Date.parse("2030-01-01T00:00:00Z") + at).toISOString() });
  service = await startAgentService({ runtime: { keepRuns: "2d" }, ...options, clock, dataDir: folder.path });
}
/** The next process, this long after the start of the test. */
const later = async (at: number, options: AgentServiceOptions = {}) => {
  await service.close();
  await start(at, options);
};
const connected = async (): Promise<AgentClient> => {
  const client = await service.connect("owner");
  await expect.poll(() => client.socket.connected).toBe(true);
  return client;
};
const played = async (client: AgentClient, prompt: string, options: Record<string, unknown> = {}) => {
  const { clientRequestId, sent } = await client.start(prompt, {}, options);
  const { runId, conversationId, sessionId } = (await client.ended(clientRequestId)).data;
  return { runId, conversationId, sessionId, sent, clientRequestId } as Record<
    "runId" | "conversationId" | "sessionId" | "clientRequestId",
    string
  > & { sent: Record<string, any> };
};
const get = (path: string) => service.call("owner", "GET", path);
const listed = async (): Promise<string[]> => (await get("/api/runs")).body.runs.map(({ run_id }: { run_id: string }) => run_id);
/** The sweeps run, until these are all the runs that are listed. */
const untilListed = (runIds: readonly string[]) =>
  expect
    .poll(async () => {
      await clock.advance(LOOK_AGAIN_MS);
      return (await listed()).sort();
    })
    .toEqual([...runIds].sort());
/** One sweep of this process, also if its engine runs no chores; at the present time or later. */
const sweep = (afterMs = 0) => {
  const { app } = service;
  const clock = createManualClock({ startAt: new Date(service.app.port(ports.clock).now() + afterMs).toISOString() });
  const given = { records: app.port(ports.records), log: app.port(ports.log), clock, ids: app.port(ports.ids) };
  const [runs, conversations] = [createRuns(given.records), createConversations(given.records)];
  return createSweepRuns({
    ...{ runs, conversations, clock, keepRunsMs: 2 * DAY, tombstoneRetentionMs: DAY },
    removed: createRemovedRuns({ ...given, runs, conversations, waits: createTurnWaits({ ...given, runs }) }),
    deliveries: createDeliveries(given),
    agents: app.port(ports.agents),
    engine: app.port(ports.engine),
  })(new AbortController().signal);
};
const inBackground = (prompt: string, more: Partial<ports.BackgroundTurn> = {}) =>
  service.app.port(ports.backgroundTurns).start({
    ...{ agentId: "helper", userId: "owner", prompt, toolIds: ["SendUserMessage"], maxTurns: 5 },
    origin: { origin: "webhook", displayName: "event" },
    ...more,
  });
const statusOf = async (runId: string) => (await get(`/api/runs/${runId}`)).body.status;
const deliveriesOf = async () => {
  const page = { offset: 0, limit: 50, signal: new AbortController().signal };
  const { items } = await service.app.port(ports.backgroundTurns).deliveries("helper", page);
  return (await Array.fromAsync(items)).map(({ delivery }) => delivery.message);
};

describe("runs whose last turn ended long ago (`agent.keepRuns`)", () => {
  it("are unknown afterwards, as are their receipts and conversations, while newer ones stay", async () => {
    const client = await connected();
    const old = await played(client, "old words");
    const used = await played(client, "words that go on");
    await later(1.5 * DAY);
    await played(await connected(), "more words", { conversationId: used.conversationId });
    const young = await played(await connected(), "young");
    await later(2.1 * DAY);
    await untilListed([used.runId, young.runId]);
    expect((await get(`/api/runs/${old.runId}`)).body).toMatchObject({ error: `Run not found: ${old.runId}` });
    expect((await get(`/api/runs/${old.runId}/receipt`)).status).toBe(404);
    expect((await get(`/api/runs/${old.runId}/runtime-state`)).status).toBe(404);
    expect((await get(`/api/conversations/${old.conversationId}/messages`)).status).toBe(404);
    const { conversations } = (await get("/api/conversations")).body;
    expect(conversations.map(({ conversationId }: any) => conversationId).sort()).toEqual(
      [used.conversationId, young.conversationId].sort(),
    );
    const again = await connected();
    expect((await again.start("on", {}, { conversationId: old.conversationId })).body.code).toBe("conversation_not_found");
    expect((await again.followUp(old.sessionId, "on")).body.code).toBe("session_not_found");
    expect((await get(`/api/runs/${used.runId}/receipt`)).body.receipts).toHaveLength(2);
    const log = service.app.port(ports.log);
    for (const stream of [`receipts/${old.runId}`, `conversations/${old.conversationId}`])
      await expect.poll(() => log.count(stream)).toBe(0);
  });

  it("stay at least as long as their submission may be looked up", async () => {
    await later(0, { runtime: { keepRuns: "1h" } });
    const first = await played(await connected(), "looked up");
    const { agentId } = first.sent["options"];
    const lookUp = async () => {
      const requests = [{ clientRequestId: first.clientRequestId }];
      return (await service.call("owner", "POST", "/api/query/client-requests/lookup", { agentId, requests })).body.results[0];
    };
    await later(23 * HOUR, { runtime: { keepRuns: "1h" } });
    const control = await inBackground("control");
    await expect.poll(() => statusOf(control.runId)).toBe("completed");
    await clock.advance(2 * LOOK_AGAIN_MS);
    expect(await lookUp()).toMatchObject({ status: "committed", sessionId: first.sessionId });
    expect(await listed()).toEqual([control.runId, first.runId]);
    await later(25 * HOUR, { runtime: { keepRuns: "1h" } });
    await untilListed([control.runId]);
    expect(await lookUp()).toMatchObject({ status: "absent" });
  });

  it("stay forever if no time is set", async () => {
    const { runId } = await played(await connected(), "for ever");
    await later(3650 * DAY, { runtime: {} });
    await clock.jump(HOUR);
    expect(await listed()).toEqual([runId]);
  });

  it("stay while a turn executes or waits in them", async () => {
    const client = await connected();
    const { runId, conversationId } = await played(client, "first");
    const control = await played(client, "control");
    const [begun, gate] = [createGate(), createGate()];
    // Only the test sweeps.
    await later(3 * DAY, { runtime: { keepRuns: "30d" } });
    // The engine begins no work: the turn waits.
    await service.app.port(ports.engine).drain(0);
    const waiting = await (await connected()).start("it waits", {}, { conversationId });
    expect(waiting.status).toBe(202);
    await sweep();
    expect(await listed()).toEqual([runId]);
    await later(6 * DAY);
    service.engine.otherwise(async () => {
      begun.open();
      await gate.opened;
    });
    await begun.opened;
    await untilListed([runId]);
    expect((await get(`/api/runs/${control.runId}`)).status).toBe(404);
    gate.open();
    await expect.poll(() => statusOf(runId)).toBe("idle");
    await later(9 * DAY);
    await untilListed([]);
  });

  it("go with what agents delivered that no longer exist", async () => {
    service.engine.on("deliver", async (_turn, { callTool, signal }) => {
      await callTool({ toolId: "SendUserMessage", arguments: { text: "An old message" } }, signal);
    });
    const { runId } = await inBackground("deliver");
    await expect.poll(() => statusOf(runId)).toBe("completed");
    expect(await deliveriesOf()).toEqual(["An old message"]);
    const agents = new Map([["another", { name: "Another" }]]);
    await later(3 * DAY, { agents });
    await sweep();
    // A sweep of another process may have begun before it.
    await expect.poll(deliveriesOf).toEqual([]);
    await untilListed([]);
  });

  it("go after their deliveries: a sweep that is interrupted leaves no delivery without its run", async () => {
    service.engine.on("deliver", async (_turn, { callTool, signal }) => {
      await callTool({ toolId: "SendUserMessage", arguments: { text: "An old message" } }, signal);
    });
    const { runId } = await inBackground("deliver");
    await expect.poll(() => statusOf(runId)).toBe("completed");
    const log = service.app.port(ports.log);
    const erase = vi.spyOn(log, "erase").mockRejectedValueOnce(new ports.LogUnavailable("The log is away"));
    await expect(sweep(3 * DAY)).rejects.toThrow(ports.LogUnavailable);
    erase.mockRestore();
    expect(await listed()).toEqual([runId]);
    await sweep(3 * DAY);
    expect([await listed(), await deliveriesOf()]).toEqual([[], []]);
  });

  it("go with everything in the background, too: cleared runs, events, what they delivered, and empty conversations", async () => {
    const client = await connected();
    const cleared = await played(client, "cleared");
    expect((await service.call("owner", "POST", `/api/conversations/${cleared.conversationId}/clear`)).status).toBe(200);
    service.engine.on("deliver", async (_turn, { callTool, signal }) => {
      await callTool({ toolId: "SendUserMessage", arguments: { text: "An old message" } }, signal);
    });
    const event = await inBackground("deliver");
    const keyed = await inBackground("with a key", { key: "one" });
    for (const { runId } of [event, keyed]) await expect.poll(() => statusOf(runId)).toBe("completed");
    expect(await deliveriesOf()).toHaveLength(1);
    await later(3 * DAY);
    await untilListed([]);
    await expect.poll(() => deliveriesOf()).toEqual([]);
    await expect.poll(async () => (await get(`/api/runs/${cleared.runId}`)).status).toBe(404);
    await expect.poll(async () => (await get("/api/conversations")).body.conversations).toEqual([]);
    const stored = await service.app.port(ports.records).collection({ name: "runs" }).query({});
    expect(stored.items).toEqual([]);
  });
});

it("a removal that a kill interrupts leaves each run whole or gone, and the next process completes it", async () => {
  const client = await connected();
  const runs = [await played(client, "first"), await played(client, "second")];
  // This process keeps runs forever: no sweep of its own comes in between.
  await later(3 * DAY, { runtime: {} });
  vi.spyOn(service.app.port(ports.log), "remove").mockRejectedValue(new ports.LogUnavailable("Killed"));
  await expect(sweep()).rejects.toThrow("Killed");
  const left = await listed();
  expect(left).toHaveLength(1);
  for (const { runId, conversationId } of runs) {
    const status = left.includes(runId) ? 200 : 404;
    expect((await get(`/api/runs/${runId}/receipt`)).status).toBe(status);
    expect((await get(`/api/conversations/${conversationId}/messages`)).status).toBe(status);
  }
  await later(3 * DAY + HOUR);
  await untilListed([]);
  const next = service.app.port(ports.log);
  for (const { runId, conversationId } of runs) {
    await expect.poll(() => next.count(`receipts/${runId}`)).toBe(0);
    await expect.poll(() => next.count(`conversations/${conversationId}`)).toBe(0);
  }
  const notes = service.app.port(ports.records).collection({ name: "removed-runs" });
  await expect.poll(async () => (await notes.query({})).items).toEqual([]);
});
