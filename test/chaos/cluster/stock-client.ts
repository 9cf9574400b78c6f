import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { QueryEnd } from "@portico/client";
import { io, type Socket } from "socket.io-client";
import { startBody, withDigest } from "../../harness/agent-app.ts";
import { CLUSTER_OWNER } from "../../harness/cluster.ts";
import { callOnce, jsonBody } from "./call.ts";
import { type Load, OpenItems, repeat } from "./load.ts";
import { DO } from "./model.ts";
import { type Asked, lookUp, verifyQueries } from "./queries.ts";
import type { Scene } from "./stage.ts";

/** The events that a client received of one query. */
interface Hearing {
  readonly seqs: number[];
  text: string;
  readonly end: PromiseWithResolvers<{ readonly event: string; readonly data: any }>;
}

const CLIENTS = 2;
/** After this time, a program opens another connection. */
const QUERIES_PER_CONNECTION = 20;
const headers = { "x-agent-service-token": CLUSTER_OWNER };

/** A stock socket.io-client without `@portico/client`. It receives every event once and in order, whichever process it reconnects to. */
export function stockClientLoad(stage: Scene): Load {
  const url = stage.cluster.url("agent");
  const asked: Asked[] = [];
  const wrong: string[] = [];
  const open = new OpenItems();
  let number = 0;

  async function ask(socket: Socket, heard: Map<string, Hearing>): Promise<void> {
    const prompt = `${Math.random() < 0.6 ? DO : "say "}stock ${++number}`;
    const { originSocketId: _, requestDigest: _digest, ...content } = startBody({ id: "" }, prompt);
    const { clientRequestId } = content;
    const hearing: Hearing = { seqs: [], text: "", end: Promise.withResolvers() };
    heard.set(clientRequestId, hearing);
    await open.during(`${prompt} (${clientRequestId})`, async () => {
      await submit(url, socket, content);
      const { event, data } = await hearing.end.promise;
      const inOrder = hearing.seqs.every((seq, at) => seq === at + 1);
      // Events that a process sent before its death are not always stored: the process that closes the turn does not know them.
      const isWhole = event === "query:error" ? data.seq <= hearing.seqs.length : data.seq === hearing.seqs.length;
      if (!inOrder || !isWhole) wrong.push(`${prompt} (${event}, ${data.seq}): heard ${hearing.seqs.join(" ")}`);
      const end: QueryEnd =
        event === "query:error"
          ? { status: "failed", error: data.error, code: data.code }
          : { status: data.terminal.status, terminal: data.terminal, result: data.result };
      asked.push({ clientRequestId, prompt, isAborted: false, text: hearing.text, end });
    });
  }

  return {
    name: "stock clients",
    open: () => open.list(),
    async run(signal) {
      await repeat(CLIENTS, signal, async () => {
        const heard = new Map<string, Hearing>();
        const socket = connect(url, heard);
        try {
          for (let at = 0; at < QUERIES_PER_CONNECTION && !signal.aborted; at++) await ask(socket, heard);
        } finally {
          socket.disconnect();
        }
      });
    },
    async verify() {
      const report = await verifyQueries(stage, asked);
      report.wrong.push(...wrong);
      return report;
    },
  };
}

function connect(url: string, heard: ReadonlyMap<string, Hearing>): Socket {
  const socket = io(url, { auth: { token: CLUSTER_OWNER, clientInstanceId: `stock-${randomUUID()}` }, forceNew: true });
  socket.on("query:message", ({ clientRequestId, message }) => {
    const hearing = heard.get(clientRequestId);
    hearing?.seqs.push(message.seq);
    if (hearing && message.type === "text") hearing.text += message.delta;
  });
  for (const event of ["query:complete", "query:error"])
    socket.on(event, (data) => heard.get(data.clientRequestId)?.end.resolve({ event, data }));
  // A service that stops, or that has just started, disconnects with a reason. socket.io-client then leaves reconnecting to the program.
  const comeBack = () => void setTimeout(() => socket.connect(), 200);
  socket.on("disconnect", (reason) => reason === "io server disconnect" && comeBack());
  socket.on("connect_error", () => socket.active || comeBack());
  return socket;
}

/** Submits the same query until the service has confirmed it, as the specification tells clients to. */
async function submit(
  url: string,
  socket: Socket,
  content: Record<string, unknown> & { clientRequestId: string },
): Promise<void> {
  const { clientRequestId, userMessageId } = content;
  for (;;) {
    while (!socket.connected) await sleep(20);
    const body = { ...withDigest(content), originSocketId: socket.id };
    const answer = await callOnce(`${url}/api/query/start`, jsonBody(headers, "POST", body));
    if (answer?.status === 202) return;
    if (answer && answer.status < 500) throw new Error(`A query was refused: ${answer.status} ${answer.bytes.toString()}`);
    const lookup = { agentId: "helper", requests: [{ clientRequestId, userMessageId }] };
    const found = await lookUp(url, headers, lookup);
    if (found.status !== "absent") return;
  }
}
