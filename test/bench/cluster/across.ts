import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { io, type Socket } from "socket.io-client";
import { startBody, TOKENS } from "../../harness/agent-app.ts";
import { endAll, placeOf, startAgent, startEngines } from "./processes.ts";
import type { Servers } from "./servers.ts";

/** Milliseconds from the call in one process until the execution in another process is told, one number per work. */
export async function measureHints(
  servers: Servers,
  name: string,
  call: "signal" | "cancel",
  works: number,
): Promise<readonly number[]> {
  const processes = await startEngines(placeOf(servers, name), 2);
  const [first, second] = processes as [(typeof processes)[0], (typeof processes)[0]];
  try {
    const { ids = [] } = await first.run({ do: "hold", runs: works });
    await sleep(500);
    const took: number[] = [];
    const calledAt = new Map<string, number>();
    for (const id of ids) {
      calledAt.set(id, (await second.run({ do: call, id })).at!);
      await sleep(2);
    }
    for (;;) {
      const { heard = {} } = await first.run({ do: "held" });
      if (ids.every((id) => heard[id] !== undefined)) {
        for (const id of ids) took.push(heard[id]! - calledAt.get(id)!);
        return took;
      }
      await sleep(20);
    }
  } finally {
    await endAll(processes);
  }
}

/** Number of turns that run at the same time, and the pace of their pieces. */
export interface EventLoad {
  readonly rounds: number;
  readonly sockets: number;
  readonly pieces: number;
  readonly gapMs: number;
}

/**
 * Milliseconds from just before an agent outputs a piece of text until the client's listener runs, one list per round, one number per
 * event. The client's socket and its query are at one process. `elsewhere`: another process executes the turn.
 */
export async function measureEvents(
  servers: Servers,
  name: string,
  { elsewhere, rounds, sockets, pieces, gapMs }: EventLoad & { readonly elsewhere: boolean },
): Promise<readonly (readonly number[])[]> {
  const place = placeOf(servers, name);
  const executing = await startAgent(place);
  const serving = elsewhere ? await startAgent({ ...place, executes: false }) : executing;
  const clients: Socket[] = [];
  let took: number[] = [];
  let ended = 0;
  try {
    await executing.run({ do: "pace", pieces, gapMs });
    for (let at = 0; at < sockets; at++) {
      const client = await connectTo(serving.url);
      clients.push(client);
      client.on("query:message", ({ message: { delta } }: { message: { delta: string } }) => {
        // A message may contain several pieces. The first of them waited longest.
        const [said = ""] = delta.trim().split(" ");
        took.push(Number(process.hrtime.bigint() - BigInt(said)) / 1e6);
      });
      for (const event of ["query:complete", "query:error"]) client.on(event, () => ended++);
    }
    const all: number[][] = [];
    // The first round warms up.
    while (all.length <= rounds) {
      [ended, took] = [0, []];
      for (const client of clients) await startTurn(serving.url, client);
      while (ended < sockets) await sleep(20);
      all.push(took);
    }
    return all.slice(1);
  } finally {
    for (const client of clients) client.disconnect();
    await endAll([...new Set([serving, executing])]);
  }
}

/** A client of the owner. */
export async function connectTo(url: string): Promise<Socket> {
  const auth = { token: TOKENS.owner, clientInstanceId: `bench-${randomUUID()}` };
  const socket = io(url, { auth, transports: ["websocket"], forceNew: true, reconnection: false });
  await new Promise<void>((resolve, reject) => socket.once("connect", () => resolve()).once("connect_error", reject));
  return socket;
}

async function startTurn(url: string, socket: Socket): Promise<void> {
  const body = JSON.stringify(startBody({ id: socket.id! }, "tell the time", {}, { agentId: "helper" }));
  const headers = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };
  const answer = await fetch(`${url}/api/query/start`, { method: "POST", headers, body });
  if (answer.status !== 202) throw new Error(`A query was answered with ${answer.status}`);
  await answer.body?.cancel();
}
