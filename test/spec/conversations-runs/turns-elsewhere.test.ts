// Several processes of one instance: connections in one, turns in another.
import { randomUUID } from "node:crypto";
import { io, type Socket } from "socket.io-client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type AgentCluster, type AgentProcess, clusterServers, createAgentCluster } from "../../harness/agent-cluster.ts";
import { type AgentClient, type AgentService, type Heard, startBody, TOKENS, withDigest } from "../../harness/agent-app.ts";
import { type BrokenLine, openBrokenLine } from "../../harness/broken-line.ts";
import { createGate, type Gate } from "../../harness/gate.ts";
import { hasRedisServer, type OwnRedis, ownRedis } from "../../harness/redis.ts";
import { untilStopped } from "../../harness/scripted-agent.ts";
import { connected, told } from "../../harness/socket-host.ts";

const servers = await clusterServers();
afterAll(() => servers?.database.drop());

/** What a client heard of one turn: `started`, the numbers of messages, `complete` or `error`. */
const shortly = (heard: readonly Heard[], clientRequestId: string): readonly string[] =>
  heard
    .filter(({ event, data }) => event.startsWith("query:") && data.clientRequestId === clientRequestId)
    .map(({ event, data }) => (event === "query:message" ? `${data.message.seq}` : event.replace("query:", "")));

/** A turn with a prompt says a word per opened gate. */
function wordByWord(service: AgentService, prompt: string, count: number): readonly Gate[] {
  const gates = Array.from({ length: count }, createGate);
  service.engine.on(prompt, async (_turn, { say }) => {
    for (const gate of gates) {
      await gate.opened;
      await say({ type: "text", delta: "word " });
    }
  });
  return gates;
}

/** Submits a query of a client to another process than the client's. */
async function submit(service: AgentService, client: Pick<AgentClient, "id">, prompt: string, more: object = {}) {
  const body = startBody(client, prompt, more);
  const { status } = await service.call("owner", "POST", "/api/query/start", body);
  expect(status).toBe(202);
  return body.clientRequestId;
}

const lookUpBody = (clientRequestId: string) => ({ agentId: "helper", requests: [{ clientRequestId }] });

describe.skipIf(!servers)("processes of one instance", () => {
  let cluster: AgentCluster;
  let [a, b, c]: AgentProcess[] = [];
  beforeAll(async () => {
    cluster = createAgentCluster(servers!);
    [a, b, c] = [await cluster.start({ executes: false }), await cluster.start(), await cluster.start({ executes: false })];
  });
  afterAll(() => cluster[Symbol.asyncDispose]());
  /** Runs whose turns have ended. */
  const ended = async () => (await c!.call("owner", "GET", "/api/runs")).body.runs.filter((run: any) => run.status !== "running");

  it("bring a turn's events from where it executes to where its client is, wherever it was submitted", async () => {
    b!.engine.on("hundred", async (_turn, { say }) => {
      for (let n = 0; n < 100; n++) await say({ type: "text", delta: `${n} ` });
    });
    const client = await a!.connect();
    const played = () => [a, b, c].map((service) => service!.engine.played.length);
    const request = await submit(c!, client, "hundred");
    await client.ended(request);
    const numbers = Array.from({ length: 100 }, (_, n) => `${n + 1}`);
    expect(shortly(client.heard, request)).toEqual(["started", ...numbers, "complete"]);
    expect(played()).toEqual([0, 1, 0]);
    const statuses = () => client.heard.filter(({ event }) => event === "activity:run_status").map(({ data }) => data.status);
    await expect.poll(statuses).toEqual(["running", "idle"]);
  });

  it("bring them to every connection of the client program, and to no other's", async () => {
    const client = await a!.connect();
    const { clientInstanceId } = client;
    const beside = [await b!.connect("owner", { clientInstanceId }), await c!.connect("owner", { clientInstanceId })];
    const strangers = [await a!.connect(), await c!.connect("member", { clientInstanceId })];
    const request = await submit(c!, client, "hello");
    for (const each of [client, ...beside]) {
      await each.ended(request);
      expect(shortly(each.heard, request)).toEqual(["started", "1", "complete"]);
    }
    const last = await submit(c!, strangers[0]!, "own");
    await strangers[0]!.ended(last);
    expect(strangers.flatMap(({ heard }) => heard.filter(({ data }) => data.clientRequestId === request))).toEqual([]);
  });

  it("show a turn that executes elsewhere to other client programs that watch it", async () => {
    const gates = wordByWord(b!, "watched", 2);
    const [client, watching] = [await a!.connect(), await c!.connect()];
    const clientRequestId = await submit(c!, client, "watched");
    gates[0]!.open();
    const { conversationId } = await client.event("query:started", clientRequestId);
    const { turn } = (await a!.call("owner", "GET", `/api/conversations/${conversationId}/running-turn`)).body;
    expect(turn).toMatchObject({ clientRequestId, begunBy: { kind: "client" } });
    watching.socket.emit("query:watch", { conversationId, clientRequestId });
    await expect.poll(() => shortly(watching.heard, clientRequestId)).toEqual(["started", "1"]);
    gates[1]!.open();
    await watching.ended(clientRequestId);
    expect(shortly(watching.heard, clientRequestId)).toEqual(["started", "1", "2", "complete"]);
  });

  it("know connections of each other: whose they are, and which there are not", async () => {
    const client = await a!.connect();
    const call = (holder: "owner" | "member", originSocketId: string) =>
      c!.call(holder, "POST", "/api/query/start", startBody({ id: originSocketId }, "x"));
    expect((await call("member", client.id)).body.code).toBe("socket_identity_mismatch");
    expect((await call("owner", "no-such-socket")).body.code).toBe("realtime_unavailable");
    const { id } = client;
    client.leave();
    await expect.poll(async () => (await call("owner", id)).status).toBe(503);
  });

  it("tell the connection that a follow-up is durable", async () => {
    const client = await a!.connect();
    const { clientInstanceId } = client;
    const beside = await a!.connect("owner", { clientInstanceId });
    const first = await submit(c!, client, "first");
    const { sessionId } = (await client.ended(first)).data;
    const message = { id: randomUUID(), role: "user", content: "second", timestamp: Date.now() };
    const body = withDigest({ sessionId, originSocketId: client.id, message, clientRequestId: randomUUID() });
    expect((await c!.call("owner", "POST", "/api/query/follow-up", body)).status).toBe(202);
    await client.event("query:followUpAccepted");
    expect(beside.heard.map(({ event }) => event)).not.toContain("query:followUpAccepted");
  });

  describe("a client that comes back to another process", () => {
    it("goes on in the middle of a turn, from where it says to be", async () => {
      const gates = wordByWord(b!, "word by word", 5);
      const client = await a!.connect();
      const request = await submit(a!, client, "word by word");
      gates.slice(0, 2).forEach((gate) => gate.open());
      await expect.poll(() => shortly(client.heard, request)).toEqual(["started", "1", "2"]);
      client.leave();
      gates[2]!.open();
      const back = await c!.connect("owner", { clientInstanceId: client.clientInstanceId, received: { [request]: 2 } });
      await expect.poll(() => shortly(back.heard, request)).toEqual(["3"]);
      gates.slice(3).forEach((gate) => gate.open());
      await back.ended(request);
      expect(shortly(back.heard, request)).toEqual(["3", "4", "5", "complete"]);
    });

    it("gets turns that ended meanwhile also if it does not say what it has", async () => {
      const client = await a!.connect();
      const gates = wordByWord(b!, "says nothing", 3);
      const request = await submit(a!, client, "says nothing");
      gates[0]!.open();
      await expect.poll(() => shortly(client.heard, request)).toEqual(["started", "1"]);
      client.leave();
      const before = (await ended()).length;
      gates.forEach((gate) => gate.open());
      await expect.poll(async () => (await ended()).length).toBe(before + 1);
      const back = await c!.connect("owner", { clientInstanceId: client.clientInstanceId });
      await back.ended(request);
      // What it had already comes again.
      expect(shortly(back.heard, request)).toEqual(["started", "1", "2", "3", "complete"]);
    });

    it("gets what it missed of turns that ended meanwhile, and nothing twice", async () => {
      const client = await a!.connect();
      const { clientInstanceId } = client;
      const had = await submit(a!, client, "had");
      await client.ended(had);
      const gates = wordByWord(b!, "missed", 3);
      const missed = await submit(a!, client, "missed");
      gates[0]!.open();
      await expect.poll(() => shortly(client.heard, missed)).toEqual(["started", "1"]);
      client.leave();
      const before = (await ended()).length;
      gates.forEach((gate) => gate.open());
      await expect.poll(async () => (await ended()).length).toBe(before + 1);
      const back = await c!.connect("owner", { clientInstanceId, received: { [had]: 1, [missed]: 1 } });
      await back.ended(missed);
      expect(shortly(back.heard, missed)).toEqual(["2", "3", "complete"]);
    });
  });

  describe("a stock client of Socket.IO that comes back to another process", () => {
    let line: BrokenLine;
    const sockets: Socket[] = [];
    beforeEach(async () => {
      line = await openBrokenLine(a!.url);
    });
    afterEach(async () => {
      for (const socket of sockets.splice(0)) socket.disconnect();
      await line[Symbol.asyncDispose]();
    });
    const stock = async () => {
      const heard: Heard[] = [];
      const socket = io(line.url, {
        auth: { token: TOKENS.owner, clientInstanceId: randomUUID() },
        transports: ["websocket"],
        ...{ forceNew: true, reconnectionDelay: 1, reconnectionDelayMax: 10 },
      });
      sockets.push(socket);
      socket.onAny((event: string, data: unknown) => heard.push({ event, data }));
      await connected(socket);
      const comeBackTo = async (service: AgentService) => {
        const back = told(socket, "connect");
        line.target = service.url;
        line.cut();
        await back;
      };
      return { socket, heard, comeBackTo, of: (request: string) => shortly(heard, request) };
    };

    it("goes on with turns that execute elsewhere, gets those that it missed, and nothing twice", async () => {
      const gates = wordByWord(b!, "word by word", 4);
      const client = await stock();
      const had = await submit(a!, { id: client.socket.id! }, "had");
      await expect.poll(() => client.of(had)).toEqual(["started", "1", "complete"]);
      const goesOn = await submit(c!, { id: client.socket.id! }, "word by word");
      gates[0]!.open();
      await expect.poll(() => client.of(goesOn)).toEqual(["started", "1"]);
      line.hold();
      const before = (await ended()).length;
      const missed = await submit(c!, { id: client.socket.id! }, "in between");
      gates[1]!.open();
      await expect.poll(async () => (await ended()).length).toBe(before + 1);
      await client.comeBackTo(c!);
      await expect.poll(() => client.of(missed)).toEqual(["started", "1", "complete"]);
      await expect.poll(() => client.of(goesOn)).toEqual(["started", "1", "2"]);
      await client.comeBackTo(b!);
      gates[2]!.open();
      await expect.poll(() => client.of(goesOn)).toEqual(["started", "1", "2", "3"]);
      await client.comeBackTo(a!);
      gates[3]!.open();
      await expect.poll(() => client.of(goesOn)).toEqual(["started", "1", "2", "3", "4", "complete"]);
      await client.comeBackTo(c!);
      const last = await submit(a!, { id: client.socket.id! }, "last");
      await expect.poll(() => client.of(last)).toContain("complete");
      expect(client.of(goesOn)).toHaveLength(6);
      expect([client.of(had), client.of(missed)]).toEqual([
        ["started", "1", "complete"],
        ["started", "1", "complete"],
      ]);
    });
  });

  it("look up each other's submissions: `current` while the process that committed them lives", async () => {
    const client = await a!.connect();
    const leaving = await cluster.start();
    // Begins where it is accepted.
    const request = await submit(leaving, client, "looked up");
    await client.ended(request);
    const lookUp = async () => {
      const { body } = await c!.call("owner", "POST", "/api/query/client-requests/lookup", lookUpBody(request));
      return body.results[0].committedServerInstance;
    };
    expect(await lookUp()).toBe("current");
    await leaving.close();
    expect(await lookUp()).toBe("previous");
  });

  it("tell clients the end of a turn whose process was lost, wherever they are", async () => {
    const late = createGate();
    b!.engine.on("lost", async (_turn, context) => {
      await context.say({ type: "text", delta: "a word" });
      // What it brings after it was given to another process does not count.
      await untilStopped(context).catch(() => late.opened);
      await context.say({ type: "text", delta: "a late word" });
    });
    const client = await a!.connect();
    const { clientInstanceId } = client;
    // One where the turn executed: that process is only fenced, and lives.
    const beside = [await b!.connect("owner", { clientInstanceId }), await c!.connect("owner", { clientInstanceId })];
    const request = await submit(c!, client, "lost");
    for (const each of [client, ...beside]) await expect.poll(() => shortly(each.heard, request)).toEqual(["started", "1"]);
    const hears = async (each: AgentClient) => {
      expect((await each.ended(request)).data).toMatchObject({ code: "process_restart" });
      expect(shortly(each.heard, request)).toEqual(["started", "1", "error"]);
    };
    // Without a database, the process is dead for the others. Another one closes its turns.
    b!.line.cut();
    await cluster.start();
    for (const each of [client, beside[1]!]) await hears(each);
    b!.line.heal();
    late.open();
    await hears(beside[0]!);
    const back = await a!.connect("owner", { clientInstanceId, received: { [request]: 0 } });
    await back.ended(request);
    // The last moments before the cut may not be written.
    expect(["started", "1", "error"]).toEqual(expect.arrayContaining([...shortly(back.heard, request)]));
  });
});

describe.skipIf(!servers || !hasRedisServer())("processes of one instance whose Redis fails", () => {
  let cluster: AgentCluster;
  let redis: OwnRedis;
  let [a, b]: AgentProcess[] = [];
  beforeEach(async () => {
    redis = await ownRedis();
    cluster = createAgentCluster(servers!, { url: redis.url });
    [a, b] = [await cluster.start({ executes: false }), await cluster.start()];
  });
  afterEach(async () => {
    await cluster[Symbol.asyncDispose]();
    await redis[Symbol.asyncDispose]();
  });

  it("bring all events, each once and in order, over lost messages, a wiped Redis and one that is replaced", async () => {
    const gates = wordByWord(b!, "word by word", 30);
    const client = await a!.connect();
    const request = await submit(a!, client, "word by word");
    const open = (from: number, to: number) => gates.slice(from, to).forEach((gate) => gate.open());
    const has = (count: number) => expect.poll(() => shortly(client.heard, request)).toHaveLength(count + 1);
    open(0, 5);
    await has(5);
    await redis.ask("CLIENT", "KILL", "TYPE", "pubsub");
    open(5, 10);
    await has(10);
    await redis.ask("FLUSHALL");
    open(10, 15);
    await has(15);
    await redis.kill();
    open(15, 20);
    // From the log, while there is no Redis.
    await has(20);
    await redis.start();
    open(20, 30);
    await client.ended(request);
    const numbers = Array.from({ length: 30 }, (_, n) => `${n + 1}`);
    expect(shortly(client.heard, request)).toEqual(["started", ...numbers, "complete"]);
  });
});
