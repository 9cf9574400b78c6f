import { io, type Socket } from "socket.io-client";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Heard, startBody } from "../harness/agent-app.ts";
import { type BrokenLine, openBrokenLine } from "../harness/broken-line.ts";
import { CLUSTER_OWNER, clusterPlace, type RunningCluster, startCluster } from "../harness/cluster.ts";
import { writeDocuments } from "../harness/cluster-documents.ts";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import { createGate } from "../harness/gate.ts";
import type { PorticoProcess } from "../harness/portico-process.ts";
import { connected, told } from "../harness/socket-host.ts";
import { chatEvents } from "../harness/stream-scripts.ts";
import { events } from "../harness/upstream-answers.ts";

const place = await clusterPlace();

describe.skipIf(!place)("a stock client of Socket.IO and the processes of a cluster", () => {
  let upstream: FakeUpstream;
  let cluster: RunningCluster;
  let line: BrokenLine;
  let socket: Socket;
  let heard: Heard[];
  let [here, there]: PorticoProcess[] = [];

  beforeAll(async () => {
    upstream = await startFakeUpstream();
    await writeDocuments(place!, { "agents/helper/agent.json": { name: "Helper", provider: "main", model: "echo-large" } });
    const provider = { id: "main", protocol: "chat-completions", baseUrl: upstream.baseUrl, models: ["echo-large"] };
    cluster = await startCluster(place!, { count: 2, env: { PORTICO_PROVIDERS: JSON.stringify([provider]) } });
    [here, there] = cluster.processes;
  }, 120_000);
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
    await upstream.close();
  });
  beforeEach(async () => {
    line = await openBrokenLine(here!.url("agent"));
    heard = [];
    socket = io(line.url, {
      auth: { token: CLUSTER_OWNER, clientInstanceId: `instance-${crypto.randomUUID()}` },
      transports: ["websocket"],
      forceNew: true,
      reconnectionDelay: 1,
      reconnectionDelayMax: 50,
    });
    socket.onAny((event: string, data: unknown) => heard.push({ event, data }));
    await connected(socket);
  });
  afterEach(async () => {
    socket.disconnect();
    await line[Symbol.asyncDispose]();
  });

  /** A turn that begins in this process, whose model says a word per opened gate. */
  async function begin(process: PorticoProcess, count: number) {
    const gates = Array.from({ length: count }, createGate);
    const [start, ...rest] = chatEvents(gates.map((_, at) => `${at} `).join(""));
    const said = rest.flatMap((event, at) => (gates[at] ? [gates[at].opened, event] : [event]));
    upstream.answerNext(events([start!, ...said]));
    const body = startBody({ id: socket.id! }, "Count");
    const answer = await fetch(`${process.url("agent")}/api/query/start`, {
      method: "POST",
      headers: { "x-agent-service-token": CLUSTER_OWNER, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    expect(answer.status).toBe(202);
    const of = (): readonly Heard[] => heard.filter(({ data }) => data.clientRequestId === body.clientRequestId);
    return {
      gates,
      of,
      text: () =>
        of()
          .map(({ data }) => data.message?.delta ?? "")
          .join(""),
      seqs: () => of().flatMap(({ data }) => data.message?.seq ?? []),
      end: () => of().find(({ event }) => event === "query:complete" || event === "query:error"),
    };
  }

  it("the client stops a turn that another process executes, and its model is asked no further", async () => {
    const turn = await begin(there!, 3);
    const asked = await upstream.request(upstream.requests.length || 1);
    turn.gates[0]!.open();
    await expect.poll(turn.seqs).toEqual([1]);
    socket.emit("query:abort", { sessionId: turn.of()[0]!.data.sessionId });
    expect(await asked.outcome).toBe("aborted");
    await expect.poll(turn.end).toMatchObject({ data: { terminal: { status: "interrupted", reason: "user_stop" } } });
  });

  it("the client hears from the living that the process of its turn was killed, and the next turn is answered", async () => {
    const other = await cluster.add();
    const turn = await begin(other, 3);
    turn.gates[0]!.open();
    await expect.poll(turn.seqs).toEqual([1]);
    other.signal("SIGKILL");
    await expect.poll(turn.end).toMatchObject({ event: "query:error", data: { code: "process_restart" } });
    turn.gates.forEach((gate) => gate.open());
    const next = await begin(there!, 1);
    next.gates[0]!.open();
    await expect.poll(next.end).toMatchObject({ event: "query:complete" });
  });

  it("the client whose process is killed comes back to another one, and gets each event once, in order", async () => {
    const other = await cluster.add();
    const back = told(socket, "connect");
    line.target = other.url("agent");
    line.cut();
    await back;
    const turn = await begin(there!, 6);
    turn.gates.slice(0, 2).forEach((gate) => gate.open());
    await expect.poll(turn.seqs).toEqual([1, 2]);
    const again = told(socket, "connect");
    line.target = undefined;
    other.signal("SIGKILL");
    await other.exited;
    turn.gates[2]!.open();
    line.target = here!.url("agent");
    await again;
    turn.gates.slice(3).forEach((gate) => gate.open());
    await expect.poll(turn.end).toMatchObject({ event: "query:complete" });
    expect(turn.seqs()).toEqual(turn.seqs().map((_, at) => at + 1));
    expect(turn.text()).toBe("0 1 2 3 4 5 ");
  });
});
