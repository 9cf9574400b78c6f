import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { afterAll, expect, it } from "vitest";
import { TOKENS } from "../harness/agent-app.ts";
import { temporaryFolder } from "../harness/portico-process.ts";
import { fromStripe } from "../harness/signed-notifications.ts";

const LIVES = process.env.PORTICO_LONG ? 50 : 2;
const WRITERS = 8;
/** Maximum number of events in one life, so that the last life ends. */
const PER_LIFE = 150;
const BURST = process.env.PORTICO_LONG ? 10_000 : 300;
const CONCURRENCY = 64;
const MEGABYTE = 1024 * 1024;

const folders: ReturnType<typeof temporaryFolder>[] = [];
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  for (const folder of folders) folder.remove();
});

it(
  `${LIVES} kills at any instant, between the 200 and the run and during it: no accepted event is lost, none runs twice, although a sender repeats every delivery without an answer; what was executing is closed as process_restart`,
  async () => {
    const folder = newFolder();
    const happened = join(folder, "played");
    const sent = new Map<string, { isAccepted: boolean }>();
    let service = await begin(folder, happened);
    const secret = await configure(service.url);
    const repeat = async (url: string) => {
      for (const [text, attempt] of sent) {
        if (isOfSender(text) && !attempt.isAccepted) attempt.isAccepted = (await deliver(url, text)) === 200;
      }
    };
    for (let life = 0; life < LIVES; life++) {
      if (life > 0) {
        service = await begin(folder, happened);
        await repeat(service.url);
      }
      const { child, url } = service;
      const exited = once(child, "exit");
      const over = new AbortController();
      const firstAccepted = Promise.withResolvers<void>();
      let left = PER_LIFE;
      const writers = Array.from({ length: WRITERS }, async () => {
        while (!over.signal.aborted && left-- > 0) {
          const text = `event ${sent.size}`;
          const attempt = { isAccepted: false };
          sent.set(text, attempt);
          const send = isOfSender(text) ? deliver(url, text, impatient(over.signal)) : trigger(url, secret, text, over.signal);
          attempt.isAccepted = (await send.catch(() => 0)) === 200;
          if (attempt.isAccepted) firstAccepted.resolve();
          await sleep(Math.random() * 4);
        }
      });
      await firstAccepted.promise;
      setTimeout(() => child.kill("SIGKILL"), Math.random() * 250);
      expect(await exited).toEqual([null, "SIGKILL"]);
      over.abort();
      await Promise.all(writers);
    }

    const { url, child } = await begin(folder, happened);
    await repeat(url);
    const accepted = [...sent].filter(([, { isAccepted }]) => isAccepted).map(([text]) => text);
    const runs = await settled(url, accepted);
    expect(accepted.length).toBeGreaterThanOrEqual(LIVES);
    const played = count(readFileSync(happened, "utf8").split("\n").filter(Boolean));
    expect(
      [...played.values()].filter((times) => times > 1),
      "nothing ran twice",
    ).toEqual([]);
    const byPrompt = count(runs.map(({ title }) => title));
    expect(
      [...byPrompt.values()].filter((times) => times > 1),
      "one run for each event",
    ).toEqual([]);
    expect(
      accepted.filter((text) => !byPrompt.has(text)),
      "nothing accepted is lost",
    ).toEqual([]);
    expect([...byPrompt.keys()].filter((text) => !sent.has(text))).toEqual([]);
    const delivered = await deliveriesOf(url);
    for (const { run_id: id, title, status, failure_reason: reason } of runs) {
      const { receipts } = await get(url, `/api/runs/${id}/receipt`);
      expect(receipts).toHaveLength(1);
      if (status === "completed") {
        expect([played.get(title), receipts[0].output, delivered.get(title)]).toEqual([1, "one two", 1]);
        continue;
      }
      expect([status, reason, receipts[0].outcome.status]).toEqual(["failed", "process_restart", "failed"]);
      expect(delivered.get(title) ?? 0).toBeLessThanOrEqual(1);
    }
    child.kill("SIGKILL");
  },
  40_000 + LIVES * 20_000,
);

it(
  `${BURST} triggers in a burst at concurrency ${CONCURRENCY} are all accepted, each is run exactly once by an agent of the offline model, and memory stays flat`,
  async () => {
    const { child, url } = await begin(newFolder(), "demo", ["--expose-gc"]);
    const secret = await configure(url);
    const pool = new Pool(url, { connections: CONCURRENCY });
    let next = 0;
    const burst = async (until: number) => {
      const senders = Array.from({ length: CONCURRENCY }, async () => {
        while (next < until) {
          const body = JSON.stringify({ event: "work", payload: { text: `event ${next++}` } });
          const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` };
          const answer = await pool.request({ path: "/api/webhook/helper", method: "POST", headers, body });
          await answer.body.dump();
          expect(answer.statusCode).toBe(200);
        }
      });
      await Promise.all(senders);
      const wanted = Array.from({ length: until }, (_, index) => `event ${index}`);
      return settled(url, wanted);
    };
    // Code and caches that are loaded once do not count as growth.
    await burst(BURST / 10);
    const before = await heapOf(child);
    const runs = await burst(BURST);
    const after = await heapOf(child);
    await pool.close();
    expect(runs).toHaveLength(BURST);
    expect(new Set(runs.map(({ title }) => title)).size).toBe(BURST);
    expect(runs.filter(({ status }) => status !== "completed")).toEqual([]);
    expect(after - before).toBeLessThan(16 * MEGABYTE);
    child.kill("SIGKILL");
  },
  60_000 + BURST * 20,
);

function newFolder(): string {
  const folder = temporaryFolder();
  folders.push(folder);
  return folder.path;
}

async function begin(dataDir: string, happened: string, execArgv: string[] = []) {
  const child = fork(join(import.meta.dirname, "processes/webhook-service.ts"), [dataDir, happened], { execArgv });
  children.push(child);
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

const owner = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };

/** A sender that leaves before some answers. */
const impatient = (signal: AbortSignal) => AbortSignal.any([signal, AbortSignal.timeout(2 + Math.floor(Math.random() * 10))]);

const SENDER_SECRET = "whsec_of_a_sender";
/** Half of the events come from a sender, which signs them and repeats those without an answer. */
const isOfSender = (text: string) => /[02468]$/.test(text);

/** Saves the event `work`, whose prompt is its field `text`, and a sender of it. Returns the secret. */
async function configure(url: string): Promise<string> {
  const body = JSON.stringify({ promptTemplate: "{{text}}", toolIds: ["SendUserMessage"] });
  const saved = await fetch(`${url}/api/agents/helper/webhooks/events/work`, { method: "PUT", headers: owner, body });
  expect(saved.status).toBe(200);
  const sender = JSON.stringify({ kind: "stripe", events: { work: "work" }, secret: SENDER_SECRET });
  const added = await fetch(`${url}/api/agents/helper/webhooks/senders/billing`, { method: "PUT", headers: owner, body: sender });
  expect(added.status).toBe(200);
  return ((await saved.json()) as { secret: string }).secret;
}

async function trigger(url: string, secret: string, text: string, signal: AbortSignal): Promise<number> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` };
  const body = JSON.stringify({ event: "work", payload: { text } });
  const answer = await fetch(`${url}/api/webhook/helper`, { method: "POST", headers, body, signal });
  await answer.body?.cancel();
  return answer.status;
}

async function deliver(url: string, text: string, signal?: AbortSignal): Promise<number> {
  const { headers, body } = fromStripe(SENDER_SECRET, { id: text, type: "work", text });
  const answer = await fetch(`${url}/api/webhook/helper/billing`, { method: "POST", headers, body, ...(signal && { signal }) });
  await answer.body?.cancel();
  return answer.status;
}

async function get(url: string, path: string): Promise<any> {
  const answer = await fetch(`${url}${path}`, { headers: owner });
  expect(answer.status).toBe(200);
  return answer.json();
}

interface ListedRun {
  readonly run_id: string;
  readonly title: string;
  readonly status: string;
  readonly failure_reason?: string;
}

/** Returns all runs when each of these prompts has one and none is running. */
async function settled(url: string, prompts: readonly string[]): Promise<readonly ListedRun[]> {
  for (;;) {
    const runs: readonly ListedRun[] = (await get(url, "/api/runs?limit=100000")).runs;
    const titles = new Set(runs.map(({ title }) => title));
    if (runs.every(({ status }) => status !== "running") && prompts.every((prompt) => titles.has(prompt))) return runs;
    await sleep(100);
  }
}

/** The number of deliveries of each text. */
async function deliveriesOf(url: string): Promise<ReadonlyMap<string, number>> {
  const texts: string[] = [];
  for (let offset = 0; ; offset += 200) {
    const { items, total } = await get(url, `/api/agents/helper/schedule-messages?limit=200&offset=${offset}`);
    texts.push(...items.map(({ delivery }: any) => delivery.message));
    if (offset + 200 >= total) return count(texts);
  }
}

async function heapOf(child: ChildProcess): Promise<number> {
  child.send("heap");
  return ((await once(child, "message")) as [number])[0];
}

function count(names: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}
