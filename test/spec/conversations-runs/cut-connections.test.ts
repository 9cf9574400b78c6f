import { randomUUID } from "node:crypto";
import { createManualClock } from "@portico/adapters/clock/manual";
import { io, type Socket } from "socket.io-client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type AgentService, type Heard, startAgentService, startBody, TOKENS } from "../../harness/agent-app.ts";
import { type BrokenLine, openBrokenLine } from "../../harness/broken-line.ts";
import { createGate, type Gate } from "../../harness/gate.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { clientKinds, connected, told } from "../../harness/socket-host.ts";

let service: AgentService;
let line: BrokenLine;
beforeAll(async () => {
  service = await startAgentService();
});
afterAll(() => service.close());
beforeEach(async () => {
  line = await openBrokenLine(service.url);
});
afterEach(() => line[Symbol.asyncDispose]());

/** A client as Socket.IO has it, with nothing of ours, behind the line. */
class StockClient {
  readonly heard: Heard[] = [];
  readonly offsets: unknown[] = [];
  readonly clientInstanceId: string;
  readonly socket: Socket;
  /** Of its last connection, also after it has noticed that it broke. */
  #id = "";

  constructor(transports: readonly ("polling" | "websocket")[] = ["websocket"], clientInstanceId: string = randomUUID()) {
    this.clientInstanceId = clientInstanceId;
    this.socket = io(line.url, {
      auth: { token: TOKENS.owner, clientInstanceId },
      transports: [...transports],
      forceNew: true,
      reconnectionDelay: 1,
      reconnectionDelayMax: 10,
    });
    this.socket.on("connect", () => void (this.#id = this.socket.id!));
    this.socket.onAny((event: string, data: unknown, ...more: unknown[]) => {
      this.heard.push({ event, data });
      if (event.startsWith("query:")) this.offsets.push(...more);
    });
  }

  /** Submits past the line. */
  async start(prompt: string, on: AgentService = service, options: object = {}): Promise<string> {
    const body = startBody({ id: this.#id }, prompt, {}, options);
    expect((await on.call("owner", "POST", "/api/query/start", body)).status).toBe(202);
    return body.clientRequestId;
  }

  /** What it heard of one turn: `started`, the numbers of messages, `complete` or `error`. */
  of(clientRequestId: string): readonly string[] {
    return this.heard
      .filter(({ data }) => data.clientRequestId === clientRequestId)
      .map(({ event, data }) => (event === "query:message" ? `${data.message.seq}` : event.replace("query:", "")));
  }

  /** Its connection breaks, and it comes back by itself. */
  async comeBack(): Promise<void> {
    const back = told(this.socket, "connect");
    line.cut();
    await back;
  }

  [Symbol.dispose](): void {
    this.socket.disconnect();
  }
}

async function stock(...given: ConstructorParameters<typeof StockClient>): Promise<StockClient> {
  const client = new StockClient(...given);
  await connected(client.socket);
  return client;
}

/** A prompt whose turn says one word per opened gate. */
function wordByWord(prompt: string, count: number, on: AgentService = service): readonly Gate[] {
  const gates = Array.from({ length: count }, createGate);
  on.engine.on(prompt, async (_turn, { say }) => {
    for (const gate of gates) {
      await gate.opened;
      await say({ type: "text", delta: "word " });
    }
  });
  return gates;
}

const runs = async (status: string, on: AgentService = service) =>
  (await on.call("owner", "GET", "/api/runs?limit=1000")).body.runs.filter((run: { status: string }) => run.status === status)
    .length;

/** No turn executes any more, and its listeners were told. */
const allOver = async (on: AgentService = service) => {
  const agents = async () => (await on.call("owner", "GET", "/api/agents")).body.agents;
  await expect.poll(async () => (await agents()).map(({ status }: { status: string }) => status)).toEqual(["idle", "idle"]);
  await expect.poll(() => runs("running", on)).toBe(0);
};

describe.each(Object.entries(clientKinds))("a stock client whose connection breaks, %s,", (_kind, transports) => {
  it("gets what was on its way, and the end, once and in order", async () => {
    const gates = wordByWord("on its way", 5);
    using client = await stock(transports);
    const request = await client.start("on its way");
    gates[0]!.open();
    gates[1]!.open();
    await expect.poll(() => client.of(request)).toEqual(["started", "1", "2"]);
    line.hold();
    for (const gate of gates) gate.open();
    await allOver();
    await client.comeBack();
    await expect.poll(() => client.of(request)).toContain("complete");
    expect(client.of(request)).toEqual(["started", "1", "2", "3", "4", "5", "complete"]);
  });

  it("is told that its session is recovered", async () => {
    using client = await stock(transports);
    const before = await client.start("before");
    await expect.poll(() => client.of(before)).toContain("complete");
    line.hold();
    await client.start("missed");
    await allOver();
    await client.comeBack();
    expect(client.socket.recovered).toBe(true);
  });

  it("gets turns that began and ended in the meantime, and nothing twice of those before", async () => {
    using client = await stock(transports);
    const before = await client.start("before");
    await expect.poll(() => client.of(before)).toContain("complete");
    line.hold();
    // Together: a client that polls notices soon that an answer does not arrive.
    const missed = await Promise.all([client.start("missed"), client.start("missed, too")]);
    await allOver();
    await client.comeBack();
    const after = await client.start("after");
    const requests = [before, ...missed, after];
    await expect.poll(() => requests.every((request) => client.of(request).includes("complete"))).toBe(true);
    for (const request of requests) expect(client.of(request)).toEqual(["started", "1", "complete"]);
  });
});

describe("a stock client", () => {
  it("that never heard anything gets all of what it missed", async () => {
    using client = await stock();
    line.hold();
    const missed = await client.start("nothing heard");
    await allOver();
    // Cut again before anything can arrive: the next connection begins where the first one did.
    await client.comeBack();
    await expect.poll(() => client.of(missed)).toEqual(["started", "1", "complete"]);
  });

  it.each([
    [20, "each from where it was"],
    [110, "of which some come again from their beginning"],
  ])("goes on with %i turns at once, %s", async (count) => {
    const ends = Math.ceil(count / 2);
    const prompts = Array.from({ length: count }, (_, at) => `at once ${count}: ${at}`);
    const gates = prompts.map((prompt) => wordByWord(prompt, 3));
    using client = await stock();
    const requests = await Promise.all(prompts.map((prompt) => client.start(prompt)));
    for (const [first] of gates) first!.open();
    await expect.poll(() => requests.every((request) => client.of(request).includes("1"))).toBe(true);
    line.hold();
    for (const [, second, third] of gates.slice(0, ends)) [second!, third!].forEach((gate) => gate.open());
    for (const [, second] of gates.slice(ends)) second!.open();
    await expect.poll(() => runs("running")).toBe(count - ends);
    await client.comeBack();
    for (const [, , third] of gates.slice(ends)) third!.open();
    await expect.poll(() => requests.every((request) => client.of(request).includes("complete"))).toBe(true);
    const heard = requests.map((request) => client.of(request));
    for (const events of heard) expect([...new Set(events)]).toEqual(["started", "1", "2", "3", "complete"]);
    expect(heard.filter((events) => events.length > 5)).toHaveLength(Math.max(count - 100, 0));
  });

  it("finds its place as a text behind each event of a turn", async () => {
    using client = await stock();
    const request = await client.start("placed");
    await expect.poll(() => client.of(request)).toContain("complete");
    expect(client.offsets).toEqual(Array.from({ length: 3 }, () => expect.stringMatching(/^.{1,200}$/)));
    expect(new Set(client.offsets).size).toBe(3);
  });

  it("comes back to a service that was restarted, for the rest of what it had begun to hear", async () => {
    const folder = temporaryFolder();
    const before = await startAgentService({ dataDir: folder.path });
    line.target = before.url;
    const gates = wordByWord("over a restart", 3, before);
    using client = await stock();
    const request = await client.start("over a restart", before);
    gates[0]!.open();
    await expect.poll(() => client.of(request)).toEqual(["started", "1"]);
    line.hold();
    for (const gate of gates) gate.open();
    await allOver(before);
    line.target = undefined;
    await before.close();
    await using after = await startAgentService({ dataDir: folder.path });
    line.target = after.url;
    await client.comeBack();
    await expect.poll(() => client.of(request)).toEqual(["started", "1", "2", "3", "complete"]);
    expect(client.socket.recovered).toBe(false);
    const next = await client.start("after the restart", after);
    await expect.poll(() => client.of(next)).toEqual(["started", "1", "complete"]);
    folder.remove();
  });
});

/** A hello with what Socket.IO's client adds by itself. */
async function hello(more: object, url: string = service.url) {
  const socket = io(url, {
    auth: { token: TOKENS.owner, clientInstanceId: randomUUID(), ...more },
    transports: ["websocket"],
    forceNew: true,
    reconnection: false,
  });
  const heard: Heard[] = [];
  socket.onAny((event: string, data: unknown) => heard.push({ event, data }));
  try {
    return { socket: await connected(socket), heard };
  } finally {
    if (!socket.connected) socket.disconnect();
  }
}

describe("what a client returns (pid, offset)", () => {
  it.each([
    ["no text", { pid: 1 }],
    ["an offset that is no text", { pid: "x", offset: {} }],
    ["anything else", { sid: "x" }],
  ])("is refused where it is %s", async (_what, more) => {
    await expect(hello(more)).rejects.toMatchObject({ code: "invalid_hello" });
  });

  it.each([
    "",
    "x",
    "life;1;a",
    "life;1;%=1",
    "life;1;#x=1",
    "life;x;",
    `life;1;${"a=1,".repeat(5000)}a=1`,
    "life;999999999999999;a=9",
  ])("begins anew where it is no place of this service: %#", async (offset) => {
    const { socket, heard } = await hello({ pid: offset, offset });
    const body = startBody({ id: socket.id! }, "begun anew");
    await service.call("owner", "POST", "/api/query/start", body);
    await expect.poll(() => heard.map(({ event }) => event)).toContain("query:complete");
    socket.disconnect();
  });

  it("does not let anybody in without a token that is good", async () => {
    await expect(hello({ token: "revoked", pid: "x", offset: "y" })).rejects.toMatchObject({ code: "unauthorized" });
  });

  it("gives no user the turns of another user", async () => {
    using client = await stock();
    const request = await client.start("not for others");
    await expect.poll(() => client.of(request)).toContain("complete");
    const life = (client.offsets[0] as string).split(";")[0];
    for (const more of [{}, { token: TOKENS.member, clientInstanceId: client.clientInstanceId }]) {
      const thief = await hello({ ...more, pid: "x", offset: `${life};0;${request}=0` });
      const own = startBody({ id: thief.socket.id! }, "own");
      await service.call("token" in more ? "member" : "owner", "POST", "/api/query/start", own);
      await expect.poll(() => thief.heard.map(({ event }) => event)).toContain("query:complete");
      expect(thief.heard.filter(({ data }) => data.clientRequestId === request)).toEqual([]);
      thief.socket.disconnect();
    }
  });
});

it("a stock client that comes back after more than two minutes is told that it may have missed something", async () => {
  const clock = createManualClock();
  await using timed = await startAgentService({ clock });
  line.target = timed.url;
  using client = await stock();
  line.target = undefined;
  line.cut();
  await told(client.socket.io, "reconnect_attempt");
  await expect
    .poll(async () => (await timed.call("owner", "POST", "/api/query/start", startBody({ id: "x" }, "x"))).status)
    .toBe(503);
  await clock.advance(2 * 60_000 + 1);
  line.target = timed.url;
  await told(client.socket, "connect");
  expect(client.socket.recovered).toBe(false);
});

it("what a client comes back for again and again, and never gets in full, is remembered until it stays away", async () => {
  const clock = createManualClock();
  await using timed = await startAgentService({ clock });
  line.target = timed.url;
  using client = await stock();
  const { clientInstanceId } = client;
  const place = (client.socket as unknown as { _pid: string })._pid.split(".")[1];
  const request = await client.start("in vain", timed);
  await expect.poll(() => client.of(request)).toContain("complete");
  for (let time = 0; time < 4; time++) {
    await clock.advance(100_000);
    // As if nothing had arrived on any connection since the first.
    const back = await hello({ clientInstanceId, pid: "x", offset: place }, timed.url);
    await expect.poll(() => back.heard.map(({ event }) => event)).toContain("query:complete");
    back.socket.disconnect();
  }
  await clock.jump(4 * 60_000);
  const late = await hello({ clientInstanceId, pid: "x", offset: place }, timed.url);
  const own = startBody({ id: late.socket.id! }, "own");
  await timed.call("owner", "POST", "/api/query/start", own);
  await expect.poll(() => late.heard.map(({ event }) => event)).toContain("query:complete");
  expect(late.heard.filter(({ data }) => data.clientRequestId === request)).toEqual([]);
  late.socket.disconnect();
});
