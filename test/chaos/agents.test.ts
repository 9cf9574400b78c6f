import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { io, type Socket } from "socket.io-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { keyedIdSuffix } from "../../plugins/src/conversations-runs/background/background-turn.ts";
import { startBody, TOKENS } from "../harness/agent-app.ts";
import { answerEvents } from "../harness/answer-events.ts";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import { temporaryFolder } from "../harness/portico-process.ts";
import { events, json } from "../harness/upstream-answers.ts";
import type { Answer } from "../harness/upstream-exchange.ts";

const LIVES = process.env.PORTICO_LONG ? 20 : 2;
/** New turns of one life with calls that wait: of queries, and of the background. */
const TURNS = 5;
const CALLS = 3;
const EVERY_MS = 1000;
/** Of each answer of the model. */
const [INPUT, OUTPUT] = [7, 11];
const TOKENS_PER_DAY = 4 * (INPUT + OUTPUT);

let folder: ReturnType<typeof temporaryFolder>;
let happened: string;
let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
const children = new Set<ChildProcess>();
const sockets = new Set<Socket>();
afterAll(() => upstream.close());

/** What the model's provider did. */
const sent = { whole: 0, away: 0 };
/** Statuses of decisions by the argument of their call, which is unlike that of any other call. Undefined: no answer came. */
const decisions = new Map<string, (number | undefined)[]>();
const runOfCall = new Map<string, string>();
/** Keys of background turns that were accepted, with their runs, and prompts of queries that were answered with 202. */
const accepted = new Map<string, string | undefined>();
const limited = { accepted: 0, refused: 0 };

// A repeated test knows nothing of the attempt before it.
beforeEach(() => {
  folder = temporaryFolder();
  happened = join(folder.path, "effects");
  upstream.reset();
  upstream.answerAll(model);
  for (const known of [decisions, runOfCall, accepted, awayFor]) known.clear();
  Object.assign(sent, { whole: 0, away: 0 });
  Object.assign(limited, { accepted: 0, refused: 0 });
});
afterEach(() => {
  for (const socket of sockets) socket.disconnect();
  for (const child of children) child.kill("SIGKILL");
  folder.remove();
});

it(
  `${LIVES} kills at any instant of agents with approvals, schedules, retries and limits: each decision counts once, no planned time is lost or runs twice, and usage is what the provider sent, or unknown`,
  async () => {
    const beganAt = Date.now();
    for (let life = 0; life < LIVES; life++) await liveAndDie(life);
    const { child, url } = await begin();
    await starting(url, child, LIVES);
    await call(url, "/api/schedules/planner/watch/pause", "POST");
    await reachLimit(url);
    const runs = await settled(url);
    const receipts = new Map<string, any[]>();
    for (const { run_id: id } of runs) receipts.set(id, (await call(url, `/api/runs/${id}/receipt?limit=100`)).receipts);

    // Approvals.
    const done = effects();
    expect(new Set(done).size, "no call took effect twice").toBe(done.length);
    for (const of of done) expect(decisions.has(of), `${of} was asked`).toBe(true);
    for (const [of, statuses] of decisions) {
      const counted = statuses.filter((status) => status === 200).length;
      expect(counted, `${of} was approved once`).toBeLessThanOrEqual(1);
      const isClosed = receipts.get(runOfCall.get(of)!)!.some(({ outcome }) => outcome.status === "failed");
      // A turn that was executing when its process died is closed, before or after its calls.
      if (counted === 1 && !isClosed) expect(done).toContain(of);
      if (!statuses.some((status) => status === 200 || status === undefined)) expect(done).not.toContain(of);
    }
    expect([...decisions.values()].flat()).toContain(200);
    for (const [prompt, runId] of accepted) {
      const ended = [...receipts].filter(([, list]) => list.some(({ input }) => input === prompt));
      expect(ended, `${prompt} is not lost, and has one run`).toHaveLength(1);
      if (runId !== undefined) expect(ended[0]![0]).toBe(runId);
    }

    // Retries: all attempts but the last found the provider away.
    const again = runs.filter(({ attempts = 1 }) => attempts > 1);
    expect(again.length).toBeGreaterThan(0);
    for (const { run_id: id, attempts } of again) expect(receipts.get(id)).toHaveLength(attempts!);

    // Schedules.
    const ids = new Set(runs.map(({ run_id: id }) => id));
    expect(ids.size).toBe(runs.length);
    const planned = plannedBetween(beganAt, Date.now()).map((time) => ids.has(watchRun(time)));
    const [first, last] = [planned.indexOf(true), planned.lastIndexOf(true)];
    expect(planned.slice(first, last + 1)).not.toContain(false);
    const watched = runs.filter(({ agent_id: id }) => id === "planner").length;
    expect([watched, watched > 0]).toEqual([planned.filter(Boolean).length, true]);

    // Limits: a call is counted within a second after its end. All calls of that second may exceed the limit.
    const usage = await usageOf(url);
    const own = await usageOf(url, "?agentId=limited");
    expect(own.inputTokens + own.outputTokens + own.unknown * (INPUT + OUTPUT)).toBeGreaterThanOrEqual(TOKENS_PER_DAY);
    expect((await startQuery(url, "limited", "one more")).status).toBe(429);

    // Usage.
    const { calls, refused, unknown, inputTokens, outputTokens } = usage;
    const known = inputTokens / INPUT;
    expect([known, outputTokens / OUTPUT]).toEqual([Math.floor(known), known]);
    expect(calls).toBe(known + refused + unknown);
    expect(calls, "each call was noted before it was sent").toBeGreaterThanOrEqual(upstream.requests.length);
    expect(known).toBeLessThanOrEqual(sent.whole);
    expect(refused).toBeLessThanOrEqual(sent.away);
    expect(sent.whole - known + sent.away - refused, "what is missing is unknown").toBeLessThanOrEqual(unknown);
    expect(known).toBeGreaterThan(0);
    if (process.env.PORTICO_LONG)
      console.warn(
        JSON.stringify({
          ...{ kills: LIVES, turns: runs.length, approved: done.length, planned: watched, again: again.length },
          ...{ limited, calls, known, refused, unknown, sent, requests: upstream.requests.length },
        }),
      );
  },
  120_000 + LIVES * 30_000,
);

async function liveAndDie(life: number): Promise<void> {
  const { child, url } = await begin();
  const exited = once(child, "exit");
  const ended = new AbortController();
  const working = [starting(url, child, life), deciding(url, ended.signal)];
  while ((await openCalls(url)).length === 0) await sleep(5);
  await sleep(Math.random() * 2000);
  child.kill("SIGKILL");
  expect(await exited).toEqual([null, "SIGKILL"]);
  ended.abort();
  await Promise.all(working);
}

/** Starts turns. All but the answers may get lost. */
async function starting(url: string, child: ChildProcess, life: number): Promise<void> {
  child.on("message", ({ key, runId }: { key: string; runId: string }) => {
    if (accepted.has(key)) expect(accepted.get(key)).toBe(runId);
    accepted.set(key, runId);
  });
  // Also those of before: the same key is the same turn.
  for (const key of accepted.keys()) if (key.startsWith("event")) send(child, key);
  for (let turn = 0; turn < TURNS; turn++) {
    send(child, `event${life}of${turn}`);
    const prompt = `query${life}of${turn}`;
    const { status } = await startQuery(url, "helper", prompt);
    if (status === 202) accepted.set(prompt, undefined);
    const other = await startQuery(url, "limited", `limited${life}of${turn}`);
    if (other.status === 202) limited.accepted++;
    if (other.status === 429) limited.refused++;
  }
}

/** Asks until the limit refuses: the lives before may have been too short for that. */
async function reachLimit(url: string): Promise<void> {
  for (let status = 0; status !== 429; await sleep(EVERY_MS)) {
    ({ status } = await startQuery(url, "limited", "once more"));
    expect([202, 429]).toContain(status);
  }
}

function send(child: ChildProcess, key: string): void {
  if (child.connected) child.send(key, () => {});
}

/** Status 0: no answer came. */
async function startQuery(url: string, agentId: string, prompt: string): Promise<{ readonly status: number }> {
  const socket = io(url, { auth: { token: TOKENS.owner, clientInstanceId: `chaos-${randomUUID()}` }, reconnection: false });
  sockets.add(socket);
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const event of ["connect", "connect_error", "disconnect"]) socket.once(event as never, () => resolve());
  await promise;
  const body = JSON.stringify(startBody({ id: socket.id ?? "gone" }, prompt, {}, { agentId }));
  const answer = await fetch(`${url}/api/query/start`, { method: "POST", headers, body }).catch(() => undefined);
  await answer?.body?.cancel().catch(() => {});
  return { status: answer?.status ?? 0 };
}

/** Approves calls as they come, many of them twice at once. */
async function deciding(url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const open = await openCalls(url).catch(() => []);
    const chosen = open.filter(() => Math.random() < 0.5);
    await Promise.all(
      chosen.flatMap((each) => (Math.random() < 0.4 ? [approve(url, each), approve(url, each)] : [approve(url, each)])),
    );
    await sleep(10);
  }
}

interface OpenCall {
  readonly of: string;
  readonly runId: string;
  readonly callId: string;
}

async function openCalls(url: string): Promise<readonly OpenCall[]> {
  const { approvals } = await call(url, "/api/approvals?limit=200");
  return approvals.map(({ runId, callId, arguments: { of } }: any) => ({ of, runId, callId }));
}

async function approve(url: string, { of, runId, callId }: OpenCall): Promise<void> {
  const statuses = decisions.get(of) ?? [];
  decisions.set(of, statuses);
  runOfCall.set(of, runId);
  const at = statuses.push(undefined) - 1;
  const body = JSON.stringify({ decision: "approve" });
  try {
    const answer = await fetch(`${url}/api/runs/${runId}/approvals/${callId}`, { method: "POST", headers, body });
    expect([200, 409]).toContain(answer.status);
    statuses[at] = answer.status;
    await answer.body?.cancel();
  } catch (error) {
    // The service died or is dying.
    if (!(error instanceof TypeError)) throw error;
  }
}

interface ListedRun {
  readonly run_id: string;
  readonly agent_id: string;
  readonly status: string;
  readonly retry_at?: string;
  readonly attempts?: number;
}

/** All runs, when each has ended and its usage is stored. Approves what still waits. */
async function settled(url: string): Promise<readonly ListedRun[]> {
  for (let found = -1; ;) {
    for (const each of await openCalls(url)) await approve(url, each);
    await sleep(EVERY_MS);
    const runs: readonly ListedRun[] = (await call(url, "/api/runs?limit=100000")).runs;
    const isBegun = [...accepted.values()].every((id) => id === undefined || runs.some((run) => run.run_id === id));
    const isOver = runs.every(({ status, retry_at: at }) => status !== "running" && at === undefined);
    if (isBegun && isOver && runs.length === found) {
      await sleep(2 * EVERY_MS);
      return runs;
    }
    found = runs.length;
  }
}

async function usageOf(url: string, query = "") {
  const { groups } = await call(url, `/api/usage${query}`);
  const sums = { calls: 0, refused: 0, unknown: 0, inputTokens: 0, outputTokens: 0 };
  for (const group of groups) for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += group[key];
  return sums;
}

const watchRun = (plannedAt: number) => `run_${keyedIdSuffix(`schedule:planner/watch:${plannedAt}`)}`;

function plannedBetween(from: number, to: number): readonly number[] {
  const first = Math.ceil(from / EVERY_MS);
  return Array.from({ length: Math.max(0, Math.floor(to / EVERY_MS) - first + 1) }, (_, at) => (first + at) * EVERY_MS);
}

function effects(): readonly string[] {
  return existsSync(happened) ? readFileSync(happened, "utf8").split("\n").filter(Boolean) : [];
}

/**
 * A model that calls the tool twice at once, once more when it has both results, and is done. Its provider is away for the first calls of some
 * events: more often than one attempt of a turn asks. It is also away for some calls of the schedule.
 */
const model: Answer = async (exchange) => {
  const body = (await exchange.request.bytes()).toString();
  const prompt = /(?:query|event)\d+of\d+/.exec(body)?.[0];
  const results = body.split('"tool_use_id":').length - 1;
  if (isAway(prompt ?? (body.includes("watch") ? "watch" : ""))) {
    sent.away++;
    return json(503, { type: "error", error: { type: "overloaded_error", message: "Later" } }, { "retry-after": "0" })(exchange);
  }
  const act = (number: number) => ({ id: `call_${prompt}_${number}`, name: "act", input: { of: `${prompt}_${number}` } });
  const calls = prompt === undefined ? [] : results === 0 ? [act(1), act(2)] : results < CALLS ? [act(CALLS)] : [];
  await events(answerEvents("messages", calls.length > 0 ? { calls } : { text: "done" }))(exchange);
  sent.whole++;
};

const AWAY_CALLS = 4;
const awayFor = new Map<string, number>();

function isAway(prompt: string): boolean {
  if (prompt === "watch") return Math.random() < 0.3;
  const calls = (awayFor.get(prompt) ?? 0) + 1;
  awayFor.set(prompt, calls);
  return /^event\d+of[13]$/.test(prompt) && calls <= AWAY_CALLS;
}

async function begin(): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const given = [folder.path, happened, upstream.baseUrl, String(TOKENS_PER_DAY)];
  const child = fork(join(import.meta.dirname, "processes/agents-service.ts"), given);
  children.add(child);
  child.once("exit", () => children.delete(child));
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

const headers = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };

async function call(url: string, path: string, method = "GET"): Promise<any> {
  const answer = await fetch(`${url}${path}`, { method, headers });
  expect(answer.status).toBe(200);
  return answer.json();
}
