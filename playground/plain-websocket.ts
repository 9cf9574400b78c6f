// A query without any library: a WebSocket, JSON and one HTTP call. Other languages can do the same.
import { hash, randomUUID } from "node:crypto";
import { webSocketRealtime } from "@portico/adapters/realtime/websocket";
import { toNodeHandler } from "@portico/core/node";
import canonicalize from "canonicalize";
import { openDesk } from "./desk.ts";
import { listen } from "./listen.ts";

const { app, tokens } = await openDesk(webSocketRealtime({}));
const agent = app.surface("agent");
await using service = await listen(toNodeHandler(agent), agent);
const { url } = service;

const query = { prompt: "Hello", options: { agentId: "echo" }, clientRequestId: randomUUID(), userMessageId: randomUUID() };
const requestDigest = `qrd1:${hash("sha256", canonicalize(query)!)}`;
const hello = { token: tokens.agent, clientInstanceId: `example:${randomUUID()}` };
let last: string | undefined; // the latest position, which a reconnecting client sends

const socket = new WebSocket(`${url.replace("http", "ws")}/socket.io/`);
const send = (frame: object) => socket.send(JSON.stringify(frame));
socket.addEventListener("open", () => send({ type: "hello", hello, last }));
socket.addEventListener("message", ({ data }) => {
  const frame = JSON.parse(data);
  last = frame.place ?? last;
  if (frame.type === "ping") send({ type: "pong" });
  if (frame.type === "refused") console.error(frame.code, frame.message);
  if (frame.type === "welcome") void submit(frame.id);
  if (frame.event === "query:message") console.log(frame.payload.message.seq, frame.payload.message.delta);
  if (frame.event === "query:complete") socket.close();
});

async function submit(originSocketId: string): Promise<void> {
  const answer = await fetch(`${url}/api/query/start`, {
    method: "POST",
    headers: { "x-agent-service-token": tokens.agent, "content-type": "application/json" },
    body: JSON.stringify({ ...query, requestDigest, originSocketId }),
  });
  if (answer.status !== 202) console.error(answer.status, await answer.text());
}

await new Promise((ended) => socket.addEventListener("close", ended));
await app.close();
