// A query without `@portico/client`: a Socket.IO connection and one HTTP call. Other languages can do the same.
import { hash, randomUUID } from "node:crypto";
import canonicalize from "canonicalize";
import { io } from "socket.io-client";

const { AGENT = "", AGENT_TOKEN: token = "" } = process.env;
const clientInstanceId = `example:${randomUUID()}`; // 16-128 characters: letters, digits, . _ : -

const socket = io(AGENT, { auth: { token, clientInstanceId } });
socket.on("connect_error", (error: Error & { data?: { code: string } }) => console.error(error.data?.code, error.message));
socket.on("query:message", ({ clientRequestId, message }) => console.log(clientRequestId, message.seq, message.delta));
socket.on("query:complete", ({ clientRequestId, terminal }) => console.log(clientRequestId, terminal.status));
await new Promise<void>((connected) => socket.once("connect", connected));

const query = { prompt: "Hello", options: { agentId: "helper" }, clientRequestId: randomUUID(), userMessageId: randomUUID() };
const requestDigest = `qrd1:${hash("sha256", canonicalize(query)!)}`;
const over = new Promise<void>((ended) => socket.once("query:complete", ended));
const answer = await fetch(`${AGENT}/api/query/start`, {
  method: "POST",
  headers: { "x-agent-service-token": token, "content-type": "application/json" },
  body: JSON.stringify({ ...query, requestDigest, originSocketId: socket.id }),
});
console.log(answer.status, await answer.json());
await over;
socket.close();
