import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { io, type Socket } from "socket.io-client";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { startBody, TOKENS } from "../harness/agent-app.ts";
import { answerEvents } from "../harness/answer-events.ts";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import { temporaryFolder } from "../harness/portico-process.ts";
import { events } from "../harness/upstream-answers.ts";
import type { Answer } from "../harness/upstream-exchange.ts";

const LIVES = process.env.PORTICO_LONG ? 40 : 2;
/** New turns of one life: of queries, and of the background. */
const TURNS = 6;
const CALLS = 3;

let folder: ReturnType<typeof temporaryFolder>;
let happened: string;
let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
  upstream.answerAll(twoCallsThenOne);
});
const children = new Set<ChildProcess>();
const sockets = new Set<Socket>();
afterAll(() => upstream.close());

type Choice = "approve" | "reject" | "edit";

interface Attempt {
  readonly choice: Choice;
  /** Undefined: the service died before it answered. */
  status?: number;
}

/** What is known of one call, by its argument, which is unlike that of any other call. */
interface Known {
  readonly runId: string;
  readonly callId: string;
  readonly attempts: Attempt[];
}

const known = new Map<string, Known>();
/** Prompts of queries that were answered with 202, and keys of background turns that were accepted, with their runs. */
const accepted = new Map<string, string | undefined>();
/** Calls that no person decided in the life in which they came. */
const leftAlone = new Set<string>();

// A repeated test knows nothing of the attempt before it.
beforeEach(() => {
  folder = temporaryFolder();
  happened = join(folder.path, "effects");
  for (const kept of [known, accepted, leftAlone]) kept.clear();
});
afterEach(() => {
  for (const socket of sockets) socket.disconnect();
  for (const child of children) child.kill("SIGKILL");
  folder.remove();
});

it(
  `${LIVES} kills at any instant while turns wait for people: each decision counts once, no tool runs without one or twice, what waits goes on waiting, and every run ends`,
  async () => {
    for (let life = 0; life < LIVES; life++) await liveAndDie(life);

    const last = await begin();
    await starting(last.url, last.child, LIVES);
    await decideEverything(last.url);
    const { runs } = await call(last.url, "/api/runs?limit=1000");
    const receipts = new Map<string, any[]>();
    for (const { run_id, approvals } of runs) {
      expect(approvals).toBeUndefined();
      receipts.set(run_id, (await call(last.url, `/api/runs/${run_id}/receipt`)).receipts);
    }
    const done = effects();
    expect(new Set(done).size, "no call took effect twice").toBe(done.length);

    const all = [...receipts.values()].flat();
    for (const [prompt, runId] of accepted) {
      const own = all.filter(({ input }) => input === prompt);
      expect(own, `${prompt} is not lost, and ended once`).toHaveLength(1);
      if (runId !== undefined) expect(receipts.get(runId)).toEqual(own);
    }
    for (const of of done) expect(known.has(of.replace("edited ", "")), `${of} was asked`).toBe(true);

    const counts = { approve: 0, reject: 0, edit: 0, closed: 0 };
    for (const [of, { runId, callId, attempts }] of known) {
      const counted = attempts.filter(({ status }) => status === 200);
      expect(counted.length, `${of} was decided once`).toBeLessThanOrEqual(1);
      // Without an answer, any of the decisions that were sent may have counted.
      const sent = counted.length > 0 ? counted : attempts.filter(({ status }) => status === undefined);
      const made = done.filter((each) => each === of || each === `edited ${of}`);
      for (const each of made) {
        const wanted: Choice = each === of ? "approve" : "edit";
        expect(
          sent.map(({ choice }) => choice),
          `${each} was approved so`,
        ).toContain(wanted);
      }
      const told = receipts
        .get(runId)!
        .flatMap(({ tool_calls }) => tool_calls)
        // Of an edited call, the receipt has the executed arguments, and the model's beside them.
        .find(({ arguments: args, proposed_arguments: proposed = args }) => proposed.of === of);
      expect(told, `${of} is in the receipt`).toBeDefined();
      expect(callId).toBe(told.id);
      const isClosed = receipts.get(runId)!.some(({ outcome }) => outcome.status === "failed");
      if (isClosed) counts.closed++;
      if (counted.length === 0) continue;
      const { choice } = counted[0]!;
      counts[choice]++;
      if (choice === "reject") expect(made).toEqual([]);
      // A turn that was executing when its process died is closed, before or after its calls.
      else if (!isClosed) expect([made, told.is_error]).toEqual([[choice === "edit" ? `edited ${of}` : of], false]);
      if (choice === "reject" && !isClosed) expect(told.is_error).toBe(true);
    }
    for (const choice of ["approve", "reject", "edit"] as const) expect(counts[choice], choice).toBeGreaterThan(0);
    const whole = all.filter(({ outcome, tool_calls }) => outcome.status === "success" && tool_calls.length === CALLS);
    for (const kind of ["query", "event"])
      expect(
        whole.some(({ input }) => input.startsWith(kind)),
        `a ${kind} waited twice and came to its own end`,
      ).toBe(true);
  },
  60_000 + LIVES * 20_000,
);

async function liveAndDie(life: number): Promise<void> {
  const { child, url } = await begin();
  const exited = once(child, "exit");
  const ended = new AbortController();
  // Calls that no person decided in the life before, and which its clients saw, still wait.
  for (const of of leftAlone) expect(await openCalls(url), `${of} still waits`).toContainEqual(expect.objectContaining({ of }));
  leftAlone.clear();
  const working = [starting(url, child, life), deciding(url, ended.signal)];
  await openCallsSeen(url);
  await sleep(Math.random() * 600);
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
  const socket = io(url, { auth: { token: TOKENS.owner, clientInstanceId: `chaos-${randomUUID()}` }, reconnection: false });
  sockets.add(socket);
  await Promise.race([once(socket as never, "connect"), once(child, "exit")]);
  for (let turn = 0; turn < TURNS; turn++) {
    send(child, `event${life}of${turn}`);
    const prompt = `query${life}of${turn}`;
    const body = JSON.stringify(startBody({ id: socket.id ?? "gone" }, prompt));
    const answer = await fetch(`${url}/api/query/start`, { method: "POST", headers, body }).catch(() => undefined);
    if (answer?.status === 202) accepted.set(prompt, undefined);
    await answer?.body?.cancel().catch(() => {});
  }
}

function send(child: ChildProcess, key: string): void {
  if (child.connected) child.send(key, () => {});
}

/** Decides calls as they come, many of them twice at once. Some are left alone in this life. */
async function deciding(url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const open = await openCalls(url).catch(() => []);
    const fresh = open.filter(({ of }) => !leftAlone.has(of) && known.get(of)!.attempts.length === 0);
    const chosen = fresh.filter(({ of }) => Math.random() < 0.6 || void leftAlone.add(of));
    await Promise.all(
      chosen.flatMap((each) => (Math.random() < 0.4 ? [decide(url, each), decide(url, each)] : [decide(url, each)])),
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
  return approvals.map(({ runId, callId, arguments: args }: any) => {
    if (!known.has(args.of)) known.set(args.of, { runId, callId, attempts: [] });
    return { of: args.of, runId, callId };
  });
}

async function openCallsSeen(url: string): Promise<void> {
  while ((await openCalls(url)).length === 0) await sleep(5);
}

async function decide(url: string, { of, runId, callId }: OpenCall): Promise<void> {
  const choice = (["approve", "approve", "reject", "edit"] as const)[Math.floor(Math.random() * 4)]!;
  const attempt: Attempt = { choice };
  known.get(of)!.attempts.push(attempt);
  const body = JSON.stringify({
    decision: choice === "reject" ? "reject" : "approve",
    ...(choice === "edit" && { arguments: { of: `edited ${of}` } }),
  });
  try {
    const answer = await fetch(`${url}/api/runs/${runId}/approvals/${callId}`, { method: "POST", headers, body });
    expect([200, 409]).toContain(answer.status);
    attempt.status = answer.status;
    await answer.body?.cancel();
  } catch (error) {
    // The service died or is dying.
    if (!(error instanceof TypeError)) throw error;
  }
}

/** Decides all calls until every run has ended. */
async function decideEverything(url: string): Promise<void> {
  await expect
    .poll(
      async () => {
        for (const each of await openCalls(url)) await decide(url, each);
        const { runs } = await call(url, "/api/runs?limit=1000");
        const begun = new Set(runs.map(({ run_id }: any) => run_id));
        const isBegun = [...accepted.values()].every((runId) => runId === undefined || begun.has(runId));
        return isBegun && runs.every(({ status }: any) => status !== "running");
      },
      { interval: 50, timeout: 60_000 },
    )
    .toBe(true);
}

function effects(): readonly string[] {
  return existsSync(happened) ? readFileSync(happened, "utf8").split("\n").filter(Boolean) : [];
}

/** A model that calls the tool twice at once, once more when it has both results, and is done. */
const twoCallsThenOne: Answer = async (exchange) => {
  const body = (await exchange.request.bytes()).toString();
  const prompt = /(?:query|event)\d+of\d+/.exec(body)![0];
  const results = body.split('"tool_use_id":').length - 1;
  const act = (number: number) => ({ id: `call_${prompt}_${number}`, name: "act", input: { of: `${prompt}_${number}` } });
  const calls = results === 0 ? [act(1), act(2)] : results < CALLS ? [act(CALLS)] : [];
  const answer = events(answerEvents("messages", calls.length > 0 ? { calls } : { text: "done" }));
  await answer(exchange);
};

async function begin(): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const child = fork(join(import.meta.dirname, "processes/approval-service.ts"), [folder.path, happened, upstream.baseUrl]);
  children.add(child);
  child.once("exit", () => children.delete(child));
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

const headers = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };

async function call(url: string, path: string): Promise<any> {
  const answer = await fetch(`${url}${path}`, { headers });
  expect(answer.status).toBe(200);
  return answer.json();
}
