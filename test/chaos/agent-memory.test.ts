import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { TOKENS } from "../harness/agent-app.ts";
import { temporaryFolder } from "../harness/portico-process.ts";

const LIVES = process.env.PORTICO_LONG ? 40 : 3;
/** Turns of the agent and writes of the user in one life. */
const AT_ONCE = 8;

const folder = temporaryFolder();
let child: ChildProcess | undefined;
afterAll(() => {
  child?.kill("SIGKILL");
  folder.remove();
});

/** What tools and calls have answered. */
const saved = new Set<string>();
let told = Promise.withResolvers<void>();

async function service(): Promise<string> {
  const started = fork(join(import.meta.dirname, "processes/memory-service.ts"), [folder.path]);
  child = started;
  const { promise, resolve } = Promise.withResolvers<string>();
  started.on("message", (message: { readonly url?: string; readonly saved?: string }) => {
    if (message.url !== undefined) resolve(message.url);
    if (message.saved === undefined) return;
    saved.add(message.saved);
    told.resolve();
  });
  return promise;
}

const headers = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };
const documents = "/api/agents/keeper/memory";

async function ask(url: string, word: string): Promise<void> {
  const body = JSON.stringify({ clientRequestId: randomUUID(), prompt: word });
  await (await fetch(`${url}/api/agents/keeper/ask`, { method: "POST", headers, body })).arrayBuffer();
}

async function write(url: string, word: string): Promise<void> {
  const answer = await fetch(`${url}${documents}/${word}`, {
    ...{ method: "PUT", headers: { ...headers, "if-none-match": "*" }, body: JSON.stringify({ text: word }) },
  });
  await answer.arrayBuffer();
  if (answer.status === 200) saved.add(word);
}

it(
  `${LIVES} kills at any instant while an agent and its user write: all that was answered is remembered, and nothing twice`,
  async () => {
    for (let life = 0; life < LIVES; life++) {
      const url = await service();
      told = Promise.withResolvers();
      for (let number = 0; number < AT_ONCE; number++) {
        void ask(url, `agent-${life}-${number}.`).catch(() => {});
        void write(url, `user-${life}-${number}`).catch(() => {});
      }
      await told.promise;
      setTimeout(() => child!.kill("SIGKILL"), Math.random() * 30);
      expect(await once(child!, "exit")).toEqual([null, "SIGKILL"]);
    }
    const url = await service();
    const get = async (path: string) => (await fetch(url + path, { headers })).json() as Promise<any>;
    await expect
      .poll(async () => (await get("/api/runs?limit=1000")).runs.map(({ status }: any) => status), { timeout: 30_000 })
      .not.toContain("running");
    const words: string[] = (await get(`${documents}/journal`)).text.split("\n").slice(1);
    const names: string[] = (await get(documents)).documents.map(({ name }: any) => name);
    expect(new Set(words).size).toBe(words.length);
    for (const word of saved) expect([...words, ...names]).toContain(word);
    expect(words.length).toBeGreaterThanOrEqual(LIVES);
  },
  30_000 + LIVES * 30_000,
);
