import { createManualClock } from "@portico/adapters/clock/manual";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type AgentClient,
  type AgentService,
  type Heard,
  startAgentService,
  startBody,
  TOKENS,
} from "../../harness/agent-app.ts";
import { createGate, type Gate } from "../../harness/gate.ts";
import { isClusterRun } from "../../harness/members.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { clientKinds } from "../../harness/socket-host.ts";

let service: AgentService;
beforeAll(async () => {
  service = await startAgentService();
});
afterAll(() => service.close());

const seqs = (heard: readonly Heard[]) => heard.flatMap(({ data }) => data.message?.seq ?? []);
/** A process of a cluster that the client was not connected to sends all of a turn again. */
const missedFrom = (first: number, heard: readonly Heard[]): readonly number[] =>
  isClusterRun && seqs(heard)[0] === 1 ? seqs(heard).slice(first - 1) : seqs(heard);
const names = (heard: readonly Heard[]) => heard.map(({ event }) => event);

/** The client leaves, and the service has seen it: its connection is unknown from then on. */
async function leave(client: AgentClient, from: AgentService = service): Promise<void> {
  const body = startBody(client, "x", {}, { agentId: "nobody" });
  client.leave();
  await expect.poll(async () => (await from.call(client.holder, "POST", "/api/query/start", body)).status).toBe(503);
}

/** A prompt whose turn says one word per opened gate. */
function wordByWord(on: AgentService, prompt: string, count: number): readonly Gate[] {
  const gates = Array.from({ length: count }, createGate);
  on.engine.on(prompt, async (_turn, { say }) => {
    for (const [at, gate] of gates.entries()) {
      await gate.opened;
      await say({ type: "text", delta: `${at + 1}` });
    }
  });
  return gates;
}

describe("the hello (4.6)", () => {
  it.each([
    ["no token", { token: "" }, "invalid_hello"],
    ["a wrong token", { token: "wrong" }, "unauthorized"],
    ["a clientInstanceId of 15 characters", { clientInstanceId: "x".repeat(15) }, "invalid_hello"],
    ["a clientInstanceId of 129 characters", { clientInstanceId: "x".repeat(129) }, "invalid_hello"],
    ["a clientInstanceId with another character", { clientInstanceId: `${"x".repeat(16)}/` }, "invalid_hello"],
    ["received that is no position", { received: { some: -1 } }, "invalid_hello"],
  ])("is refused with %s", async (_what, options, code) => {
    const refusal = await service.connect("owner", options).then(
      () => undefined,
      (error: Error & { data?: unknown }) => error,
    );
    expect(refusal).toMatchObject({ data: { code } });
    expect(refusal!.message).not.toContain("wrong");
  });

  it("takes 16 and 128 characters of letters, digits, '.', '_', ':', '-'", async () => {
    for (const clientInstanceId of ["aZ09._:-aZ09._:-", "x".repeat(128)]) {
      const client = await service.connect("owner", { clientInstanceId });
      expect(client.socket.connected).toBe(true);
    }
  });
});

describe.each(Object.entries(clientKinds))("a client over %s", (_kind, transports) => {
  it("hears its turn, in order", async () => {
    const client = await service.connect("member", { transports });
    const { clientRequestId } = await client.start("hello there");
    await client.ended(clientRequestId);
    expect(names(client.of(clientRequestId))).toEqual(["query:started", "query:message", "query:complete"]);
  });
});

describe("the recipients of a turn's events", () => {
  it("are the connections of the same identity and clientInstanceId alone", async () => {
    const clientInstanceId = "shared-instance-0001";
    const [submitter, twin, sibling, stranger] = await Promise.all([
      service.connect("owner", { clientInstanceId }),
      service.connect("owner", { clientInstanceId }),
      service.connect("owner"),
      service.connect("member", { clientInstanceId }),
    ]);
    const { clientRequestId } = await submitter.start("for few");
    await Promise.all([submitter.ended(clientRequestId), twin.ended(clientRequestId)]);
    // Whatever would have come has come when these have.
    const [a, b] = await Promise.all([sibling.start("own"), stranger.start("own")]);
    await Promise.all([sibling.ended(a.clientRequestId), stranger.ended(b.clientRequestId)]);
    expect(sibling.of(clientRequestId)).toEqual([]);
    expect(stranger.of(clientRequestId)).toEqual([]);
  });
});

describe("a socket that comes back (same token and clientInstanceId, within two minutes) gets the events it missed, in order", () => {
  it("in the middle of a turn", async () => {
    const gates = wordByWord(service, "counted", 6);
    const first = await service.connect("owner");
    const { clientRequestId } = await first.start("counted");
    gates[0]!.open();
    gates[1]!.open();
    await expect.poll(() => seqs(first.heard)).toEqual([1, 2]);
    await leave(first);
    gates[2]!.open();
    gates[3]!.open();
    const back = await service.connect("owner", { clientInstanceId: first.clientInstanceId });
    gates[4]!.open();
    gates[5]!.open();
    await back.ended(clientRequestId);
    expect(missedFrom(3, back.of(clientRequestId))).toEqual([3, 4, 5, 6]);
    expect(names(back.of(clientRequestId)).at(-1)).toBe("query:complete");
  });

  it("after the turn has ended", async () => {
    const gates = wordByWord(service, "ends alone", 3);
    const first = await service.connect("owner");
    const { clientRequestId } = await first.start("ends alone");
    const { runId } = await first.event("query:started", clientRequestId);
    await leave(first);
    for (const gate of gates) gate.open();
    await expect.poll(async () => (await service.call("owner", "GET", `/api/runs/${runId}`)).body.status).toBe("idle");
    const back = await service.connect("owner", { clientInstanceId: first.clientInstanceId });
    await back.ended(clientRequestId);
    expect(seqs(back.of(clientRequestId))).toEqual([1, 2, 3]);
  });

  it("once: a client that comes back again has missed no event", async () => {
    const gates = wordByWord(service, "ends alone, too", 3);
    const first = await service.connect("owner");
    const { clientRequestId } = await first.start("ends alone, too");
    await first.event("query:started", clientRequestId);
    await leave(first);
    for (const gate of gates) gate.open();
    const back = await service.connect("owner", { clientInstanceId: first.clientInstanceId });
    await back.ended(clientRequestId);
    await leave(back);
    const third = await service.connect("owner", { clientInstanceId: first.clientInstanceId });
    const own = await third.start("own");
    await third.ended(own.clientRequestId);
    expect(third.of(clientRequestId)).toEqual([]);
  });

  it("more than fits into one page", async () => {
    const gate = createGate();
    service.engine.on("long", async (_turn, { say }) => {
      await gate.opened;
      for (let at = 1; at <= 1500; at++) await say({ type: "text", delta: `${at} ` });
    });
    const first = await service.connect("owner");
    const { clientRequestId } = await first.start("long");
    const { runId } = await first.event("query:started", clientRequestId);
    await leave(first);
    gate.open();
    await expect.poll(async () => (await service.call("owner", "GET", `/api/runs/${runId}`)).body.status).toBe("idle");
    const back = await service.connect("owner", { clientInstanceId: first.clientInstanceId });
    await back.ended(clientRequestId);
    expect(seqs(back.of(clientRequestId))).toEqual(Array.from({ length: 1500 }, (_, at) => at + 1));
  });

  it("from where the client itself says that it came, exactly", async () => {
    const gates = wordByWord(service, "exact", 4);
    const first = await service.connect("owner");
    const { clientRequestId } = await first.start("exact");
    for (const gate of gates.slice(0, 3)) gate.open();
    await expect.poll(() => seqs(first.heard)).toEqual([1, 2, 3]);
    first.leave();
    const { clientInstanceId } = first;
    // The third was on its way when the connection broke.
    const back = await service.connect("owner", { clientInstanceId, received: { [clientRequestId]: 2 } });
    gates[3]!.open();
    await back.ended(clientRequestId);
    expect(seqs(back.of(clientRequestId))).toEqual([3, 4]);
    expect(names(back.of(clientRequestId))).not.toContain("query:started");
    back.leave();
    const all = await service.connect("owner", { clientInstanceId, received: { [clientRequestId]: 0 } });
    await all.ended(clientRequestId);
    expect(names(all.of(clientRequestId))[0]).toBe("query:started");
    expect(seqs(all.of(clientRequestId))).toEqual([1, 2, 3, 4]);
  });

  it("but no other user, and no other client program of the same user", async () => {
    const first = await service.connect("owner");
    const { clientRequestId } = await first.start("mine");
    await first.ended(clientRequestId);
    first.leave();
    const received = { [clientRequestId]: 0 };
    const thief = await service.connect("member", { clientInstanceId: first.clientInstanceId, received });
    const sibling = await service.connect("owner", { received });
    for (const client of [thief, sibling]) {
      const own = await client.start("own");
      await client.ended(own.clientRequestId);
      expect(client.of(clientRequestId)).toEqual([]);
    }
  });
});

it("a socket that comes back after more than two minutes gets nothing by itself, and what it asks for", async () => {
  const clock = createManualClock();
  await using timed = await startAgentService({ clock });
  const gate = createGate();
  timed.engine.on("late", async (_turn, { say }) => {
    await gate.opened;
    await say({ type: "text", delta: "late" });
  });
  const first = await timed.connect("owner");
  const { clientInstanceId } = first;
  const { clientRequestId } = await first.start("late");
  const { runId } = await first.event("query:started", clientRequestId);
  await leave(first, timed);
  gate.open();
  await expect.poll(async () => (await timed.call("owner", "GET", `/api/runs/${runId}/receipt`)).body.receipts).toHaveLength(1);
  // The receipt is in the commit of the end, wherever the turn executed. Listeners of this process are let go a little later.
  const agents = async () => (await timed.call("owner", "GET", "/api/agents")).body.agents;
  await expect.poll(async () => (await agents()).map(({ status }: { status: string }) => status)).toEqual(["idle", "idle"]);
  await clock.advance(2 * 60_000 + 1);
  const back = await timed.connect("owner", { clientInstanceId });
  const own = await back.start("own");
  await back.ended(own.clientRequestId);
  expect(back.of(clientRequestId)).toEqual([]);
  const exact = await timed.connect("owner", { clientInstanceId, received: { [clientRequestId]: 0 } });
  await exact.ended(clientRequestId);
  expect(seqs(exact.of(clientRequestId))).toEqual([1]);
});

it("after a restart what was said is replayed from where the client had come, and lookups know the earlier process", async () => {
  const folder = temporaryFolder();
  const before = await startAgentService({ dataDir: folder.path });
  const first = await before.connect("owner");
  const { clientRequestId } = await first.start("kept");
  await first.ended(clientRequestId);
  await before.close();
  const after = await startAgentService({ dataDir: folder.path });
  const back = await after.connect("owner", {
    clientInstanceId: first.clientInstanceId,
    received: { [clientRequestId]: 0 },
  });
  await back.ended(clientRequestId);
  expect(names(back.of(clientRequestId))).toEqual(["query:started", "query:message", "query:complete"]);
  const { body } = await after.call("owner", "POST", "/api/query/client-requests/lookup", {
    agentId: "helper",
    requests: [{ clientRequestId }],
  });
  expect(body.results).toMatchObject([{ status: "committed", committedServerInstance: "previous" }]);
  await after.close();
  folder.remove();
});

it("no token, prompt or answer is in what the operators are told", async () => {
  const client = await service.connect("owner");
  const { clientRequestId } = await client.start("prompt hunter2");
  await client.ended(clientRequestId);
  const told = JSON.stringify([service.telemetry.lines, service.telemetry.requests]);
  for (const secret of ["hunter2", ...Object.values(TOKENS)]) expect(told).not.toContain(secret);
});
