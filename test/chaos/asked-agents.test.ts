import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ports } from "@portico/core";
import { afterAll, expect, it } from "vitest";
import { TOKENS } from "../harness/agent-app.ts";
import { startAskedAgents } from "../harness/asked-agents.ts";
import { temporaryFolder } from "../harness/portico-process.ts";

const LIVES = process.env.PORTICO_LONG ? 50 : 3;
const CALLERS = 8;
/** Maximum number of calls in one life, so that the last life ends. */
const PER_LIFE = 150;

const folder = temporaryFolder();
const happened = join(folder.path, "played");
const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  folder.remove();
});

interface Service {
  readonly child: ChildProcess;
  readonly proxy: string;
  readonly token: string;
}

it(
  `${LIVES} kills at any instant while clients call an agent as a model: no turn runs twice, each has one receipt, an answer that a caller has is in it, and what was executing is closed as process_restart`,
  async () => {
    const answers = new Map<string, string | undefined>();
    for (let life = 0; life < LIVES; life++) {
      const service = await begin();
      const exited = once(service.child, "exit");
      const over = new AbortController();
      const answered = Promise.withResolvers<void>();
      let left = PER_LIFE;
      const callers = Array.from({ length: CALLERS }, async () => {
        while (!over.signal.aborted && left-- > 0) {
          const text = `call ${answers.size}`;
          answers.set(text, undefined);
          // Some leave in the middle.
          const gone = Math.random() < 0.2 ? AbortSignal.timeout(Math.ceil(Math.random() * 20)) : undefined;
          const answer = await ask(service, text, AbortSignal.any([over.signal, ...(gone ? [gone] : [])])).catch(() => undefined);
          answers.set(text, answer);
          if (answer !== undefined) answered.resolve();
        }
      });
      await answered.promise;
      setTimeout(() => service.child.kill("SIGKILL"), Math.random() * 250);
      expect(await exited).toEqual([null, "SIGKILL"]);
      over.abort();
      await Promise.all(callers);
    }

    await using agents = await startAskedAgents({ dataDir: folder.path });
    const { url, app } = agents.service;
    const runs = await settled(url);
    const played = readFileSync(happened, "utf8").split("\n").filter(Boolean);
    expect(new Set(played).size, "nothing ran twice").toBe(played.length);
    expect(new Set(runs.map(({ title }) => title)).size, "one run for each call").toBe(runs.length);
    const byTitle = new Map(runs.map((run) => [run.title, run]));
    for (const [text, answer] of answers)
      if (answer !== undefined) expect([answer, byTitle.get(text)?.status]).toEqual(["one two", "completed"]);
    for (const { run_id: id, title, status, failure_reason: reason, interruption_reason: why } of runs) {
      const { receipts } = await get(url, `/api/runs/${id}/receipt`);
      expect(receipts).toHaveLength(1);
      if (status === "completed") expect([receipts[0].output, played.includes(title)]).toEqual(["one two", true]);
      else if (status === "idle") expect(why).toBe("caller_left");
      else expect([status, reason, receipts[0].outcome.status]).toEqual(["failed", "process_restart", "failed"]);
      await expect.poll(() => app.port(ports.log).count(`turns/${id.replace("run_", "turn_")}`)).toBe(0);
    }
    for (const name of ["said-to-turns", "background-turns"])
      expect((await app.port(ports.records).collection({ name }).query()).items, "nothing else is kept").toEqual([]);
  },
  40_000 + LIVES * 20_000,
);

async function begin(): Promise<Service> {
  const child = fork(join(import.meta.dirname, "processes/asked-agents-service.ts"), [folder.path, happened]);
  children.push(child);
  const [found] = (await once(child, "message")) as [Pick<Service, "proxy" | "token">];
  return { child, ...found };
}

/** The text of a streamed answer that was read to its end. */
async function ask({ proxy, token }: Service, text: string, signal: AbortSignal): Promise<string | undefined> {
  const answer = await fetch(`${proxy}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ model: "helper", stream: true, messages: [{ role: "user", content: text }] }),
    signal,
  });
  const events = (await answer.text())
    .split("\n\n")
    .filter(Boolean)
    .map((event) => event.replace(/^data: /, ""));
  if (answer.status !== 200 || events.pop() !== "[DONE]") return undefined;
  return events.map((event) => (JSON.parse(event) as any).choices[0]?.delta.content ?? "").join("");
}

async function get(url: string, path: string): Promise<any> {
  const token = path.endsWith("/receipt") ? TOKENS.member : TOKENS.owner;
  const answer = await fetch(`${url}${path}`, { headers: { "x-agent-service-token": token } });
  expect(answer.status).toBe(200);
  return answer.json();
}

interface ListedRun {
  readonly run_id: string;
  readonly title: string;
  readonly status: string;
  readonly failure_reason?: string;
  readonly interruption_reason?: string;
}

/** All runs, when none is running. */
async function settled(url: string): Promise<readonly ListedRun[]> {
  for (;;) {
    const runs: readonly ListedRun[] = (await get(url, "/api/runs?limit=100000")).runs;
    if (runs.every(({ status }) => status !== "running")) return runs;
    await sleep(100);
  }
}
