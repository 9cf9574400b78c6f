import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it } from "vitest";
import { TOKENS } from "../harness/agent-app.ts";
import { temporaryFolder } from "../harness/portico-process.ts";

const LIVES = process.env.PORTICO_LONG ? 50 : 4;
const folder = temporaryFolder();
afterAll(() => folder.remove());

interface Page {
  readonly branch: number;
  readonly branches: readonly { readonly position: number; readonly branches: readonly number[] }[];
  readonly messages: readonly {
    readonly id: string;
    readonly role: string;
    readonly parts: readonly { readonly text: string }[];
  }[];
}

it(
  `${LIVES} kills at any instant while a message is edited and branches are chosen: every accepted edit is one branch with its own message, and what was there before stays`,
  async () => {
    const first = await begin();
    const { conversationId } = (await ask(first.url, { prompt: "first" })).body;
    const [question] = (await read(first.url, conversationId)).messages;
    first.child.kill("SIGKILL");
    await once(first.child, "exit");
    /** Of each edit, whether it was accepted. */
    const edits = new Map<string, boolean>();
    for (let life = 0; life < LIVES; life++) await liveAndDie(conversationId, question!.id, edits);

    const { child, url } = await begin();
    const total = await untilSettled(url, conversationId);
    expect((await read(url, conversationId, "?branch=1")).messages[0]).toEqual(question);
    const seen: string[] = [];
    for (let branch = 2; branch <= total; branch++) {
      const { messages, branches } = await read(url, conversationId, `?branch=${branch}`);
      expect(messages[0]!.role).toBe("user");
      seen.push(messages[0]!.parts[0]!.text);
      expect(branches).toMatchObject([{ position: branch }]);
      expect(branches[0]!.branches).toHaveLength(total);
    }
    expect(new Set(seen).size, "no edit has two branches").toBe(seen.length);
    for (const text of seen) expect(edits.has(text), "each branch begins with its edit").toBe(true);
    for (const [text, isAccepted] of edits) if (isAccepted) expect(seen, "no accepted edit is lost").toContain(text);
    expect(seen.length).toBeGreaterThan(0);
    child.kill("SIGKILL");
  },
  40_000 + LIVES * 20_000,
);

async function liveAndDie(conversationId: string, replaces: string, edits: Map<string, boolean>): Promise<void> {
  const { child, url } = await begin();
  const exited = once(child, "exit");
  await untilSettled(url, conversationId);
  setTimeout(() => child.kill("SIGKILL"), 20 + Math.random() * 400);
  while (child.exitCode === null && child.signalCode === null) {
    const prompt = `edit ${edits.size}`;
    edits.set(prompt, false);
    try {
      const { status } = await ask(url, { prompt, conversationId, replaces });
      edits.set(prompt, status === 200);
      await choose(url, conversationId, 1);
    } catch {
      // The service died or is dying.
    }
  }
  expect(await exited).toEqual([null, "SIGKILL"]);
}

/** How many branches there are, when no turn is open. */
async function untilSettled(url: string, conversationId: string): Promise<number> {
  for (;;) {
    const status = await choose(url, conversationId, 1);
    if (status === 200) return (await read(url, conversationId)).branches[0]?.branches.length ?? 1;
    expect(status).toBe(409);
    await sleep(50);
  }
}

async function begin(): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const child = fork(join(import.meta.dirname, "processes/agent-service.ts"), [folder.path, join(folder.path, "played")]);
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

const headers = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };

async function ask(
  url: string,
  body: object,
): Promise<{ readonly status: number; readonly body: { readonly conversationId: string } }> {
  const wait = { prefer: "wait=20" };
  const path = `${url}/api/agents/helper/ask`;
  const answer = await fetch(path, { method: "POST", headers: { ...headers, ...wait }, body: JSON.stringify(body) });
  return { status: answer.status, body: (await answer.json()) as { conversationId: string } };
}

async function choose(url: string, conversationId: string, branch: number): Promise<number> {
  const path = `${url}/api/conversations/${conversationId}/branch`;
  const answer = await fetch(path, { method: "PUT", headers, body: JSON.stringify({ branch }) });
  await answer.body?.cancel();
  return answer.status;
}

async function read(url: string, conversationId: string, query = ""): Promise<Page> {
  const answer = await fetch(`${url}/api/conversations/${conversationId}/messages${query}`, { headers });
  expect(answer.status).toBe(200);
  return (await answer.json()) as Page;
}
