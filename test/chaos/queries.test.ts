import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { randomUUID } from "node:crypto";
import { io, type Socket } from "socket.io-client";
import { afterAll, expect, it } from "vitest";
import { startBody, TOKENS, withDigest } from "../harness/agent-app.ts";
import { temporaryFolder } from "../harness/portico-process.ts";

const LIVES = process.env.PORTICO_LONG ? 50 : 2;
/** Number of queries in all lives together. */
const QUERIES = 200;
const WRITERS = 8;
const folder = temporaryFolder();
afterAll(() => folder.remove());
const happened = join(folder.path, "played");

interface Attempt {
  readonly clientRequestId: string;
  readonly prompt: string;
  /** A 202 was read. */
  isAccepted: boolean;
}

it(
  `${LIVES} kills at any instant while ${QUERIES} queries are submitted: lookup, conversation and run agree for every clientRequestId; nothing accepted is lost, nothing ran twice`,
  async () => {
    const attempts: Attempt[] = [];
    // With more lives than queries, some lives would be idle.
    const perLife = Math.max(Math.ceil(QUERIES / LIVES), WRITERS * 2);
    for (let life = 0; life < LIVES; life++) await liveAndDie(attempts, perLife);
    expect(attempts.length).toBeGreaterThanOrEqual(Math.min(QUERIES / 2, LIVES * WRITERS));

    const last = await begin();
    const call = caller(last.url);
    const fates = await settled(call, attempts);
    const played = count(readFileSync(happened, "utf8").split("\n").filter(Boolean));
    const found = { committed: 0, absent: 0, closed: 0 };
    for (const [at, { clientRequestId, prompt, isAccepted }] of attempts.entries()) {
      const { status, sessionId, executionWitness } = fates[at]!;
      const plays = played.get(prompt) ?? 0;
      expect(plays, "nothing ran twice").toBeLessThanOrEqual(1);
      if (status === "absent") {
        expect([isAccepted, plays], "nothing accepted is lost").toEqual([false, 0]);
        found.absent++;
        continue;
      }
      expect([status, executionWitness]).toEqual(["committed", "user-message"]);
      const run = await call("GET", `/api/runs/${sessionId!.replace("ses_", "run_")}`);
      const messages = await allMessages(call, run.conversation_id);
      const own = messages.filter((message) => message.clientRequestId === clientRequestId);
      expect(own.filter(({ role }) => role === "user").map(({ parts }) => parts[0]!.text)).toEqual([prompt]);
      const receipts = (await call("GET", `/api/runs/${run.run_id}/receipt`)).receipts.filter(
        ({ input }: { input: string }) => input === prompt,
      );
      expect(receipts).toHaveLength(1);
      expect(["idle", "failed"]).toContain(run.status);
      const isClosed = receipts[0].outcome.status === "failed";
      // A turn reaches its agent, or its process died just before.
      if (!isClosed) expect([plays, receipts[0].output]).toEqual([1, "one two three"]);
      found.committed++;
      if (isClosed) found.closed++;
    }
    expect(found.committed + found.absent).toBe(attempts.length);
    expect(found.committed).toBeGreaterThan(0);
    last.child.kill("SIGKILL");
  },
  40_000 + LIVES * 20_000,
);

/** Lets clients submit until the service is killed, some time after it began. */
async function liveAndDie(attempts: Attempt[], most: number): Promise<void> {
  const { child, url } = await begin();
  const exited = once(child, "exit");
  const socket = io(url, { auth: { token: TOKENS.owner, clientInstanceId: `chaos-${randomUUID()}` }, reconnection: false });
  await once(socket as never, "connect");
  const sessions: string[] = [];
  socket.on("query:started", ({ sessionId }) => void sessions.push(sessionId));
  let left = most;
  const life = new AbortController();
  const writers = Array.from({ length: WRITERS }, async () => {
    while (!life.signal.aborted && left-- > 0) await submit(url, socket, sessions, attempts, life.signal);
  });
  setTimeout(() => child.kill("SIGKILL"), 20 + Math.random() * 250);
  expect(await exited).toEqual([null, "SIGKILL"]);
  life.abort();
  await Promise.all(writers);
  socket.disconnect();
}

async function submit(url: string, socket: Socket, sessions: string[], attempts: Attempt[], signal: AbortSignal): Promise<void> {
  const prompt = `prompt ${attempts.length}`;
  const sessionId = Math.random() < 0.4 ? sessions[Math.floor(Math.random() * sessions.length)] : undefined;
  const [path, body] = sessionId === undefined ? startOf(socket, prompt) : followUpOf(socket, sessionId, prompt);
  const attempt: Attempt = { clientRequestId: body.clientRequestId, prompt, isAccepted: false };
  attempts.push(attempt);
  try {
    const answer = await fetch(`${url}${path}`, { method: "POST", headers, body: JSON.stringify(body), signal });
    attempt.isAccepted = answer.status === 202;
    await answer.body?.cancel();
  } catch {
    // The service died or is dying. The lookup tells whether the query arrived.
  }
  await sleep(Math.random() * 10);
}

const startOf = (socket: Socket, prompt: string) => ["/api/query/start", startBody({ id: socket.id ?? "gone" }, prompt)] as const;
const followUpOf = (socket: Socket, sessionId: string, prompt: string) =>
  [
    "/api/query/follow-up",
    withDigest({
      sessionId,
      originSocketId: socket.id ?? "gone",
      message: { id: randomUUID(), role: "user", content: prompt, timestamp: 1 },
      clientRequestId: randomUUID(),
    }),
  ] as const;

async function begin(): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const child = fork(join(import.meta.dirname, "processes/agent-service.ts"), [folder.path, happened]);
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

const headers = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };
type CallService = (method: string, path: string, body?: unknown) => Promise<any>;

function caller(url: string): CallService {
  return async (method, path, body) => {
    const answer = await fetch(`${url}${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
    expect(answer.status).toBe(200);
    return answer.json();
  };
}

interface Fate {
  readonly status: string;
  readonly sessionId?: string;
  readonly executionWitness?: string;
}

/** The result of the lookup when nothing waits and every run has ended. */
async function settled(call: CallService, attempts: readonly Attempt[]): Promise<readonly Fate[]> {
  for (;;) {
    const fates: Fate[] = [];
    for (let from = 0; from < attempts.length; from += 100) {
      const requests = attempts.slice(from, from + 100).map(({ clientRequestId }) => ({ clientRequestId }));
      fates.push(...(await call("POST", "/api/query/client-requests/lookup", { agentId: "helper", requests })).results);
    }
    const { runs } = await call("GET", "/api/runs?limit=100000");
    const isAtRest = runs.every(({ status }: { status: string }) => status !== "running");
    if (isAtRest && fates.every(({ status }) => status !== "reserved")) return fates;
    await sleep(50);
  }
}

interface Message {
  readonly role: string;
  readonly clientRequestId: string;
  readonly parts: readonly { readonly text: string }[];
}

async function allMessages(call: CallService, conversationId: string): Promise<readonly Message[]> {
  const path = `/api/conversations/${conversationId}/messages?limit=200`;
  let page = await call("GET", path);
  const messages: Message[] = [...page.messages];
  while (page.before !== undefined) {
    page = await call("GET", `${path}&before=${page.before}`);
    messages.unshift(...page.messages);
  }
  return messages;
}

function count(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
