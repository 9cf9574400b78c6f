import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { io, type Socket } from "socket.io-client";
import { startBody } from "./agent-app.ts";

/** A turn that waits for a person, in a service of which the test has the address and a token. */
export interface WaitingCall {
  readonly runId: string;
  readonly callId: string;
  /** What the clients are told of the call. */
  readonly told: any;
  readonly socket: Socket;
}

/** Asks an agent, and resolves when a call of its turn waits. */
export async function waitingCall(url: string, token: string, agentId: string, prompt: string): Promise<WaitingCall> {
  const socket = io(url, { auth: { token, clientInstanceId: `waiting-${randomUUID()}` }, reconnection: false, forceNew: true });
  await once(socket as never, "connect");
  const told = new Promise<any>((resolve) =>
    socket.on("query:message", (event) => void (event.message.type === "approval" && resolve(event))),
  );
  const response = await fetch(`${url}/api/query/start`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-agent-service-token": token },
    body: JSON.stringify(startBody({ id: socket.id! }, prompt, {}, { agentId })),
  });
  if (response.status !== 202) throw new Error(`A query was answered with ${response.status}: ${await response.text()}`);
  await response.body?.cancel();
  const { runId, message } = await told;
  return { runId, callId: message.content.callId, told: message.content, socket };
}
