import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, it } from "vitest";
import { TOKENS } from "../harness/agent-app.ts";
import { temporaryFolder } from "../harness/portico-process.ts";

const LIVES = process.env.PORTICO_LONG ? 50 : 4;
const folder = temporaryFolder();
afterAll(() => folder.remove());

/** A message that the service accepted, by its text. */
interface Said {
  readonly clientRequestId: string;
  readonly messageId: string;
  readonly text: string;
}

it(
  `${LIVES} kills at any instant while turns are steered: every accepted message is in its conversation once, or its sender learns that it is not`,
  async () => {
    const said: Said[] = [];
    const conversations = new Map<string, string>();
    for (let life = 0; life < LIVES; life++) await liveAndDie(said, conversations);
    const { child, url } = await begin();
    expect(said.length).toBeGreaterThan(0);
    const taken: string[] = [];
    for (const { clientRequestId, messageId, text } of said) {
      const status = await settled(url, clientRequestId, messageId, text);
      const conversationId = conversations.get(clientRequestId)!;
      const found = (await messagesOf(url, conversationId)).filter(({ parts }) => parts[0]?.text === text);
      expect(found, `${text} is ${status}`).toHaveLength(status === "taken" ? 1 : 0);
      expect(found.every(({ role, steers }) => role === "user" && steers)).toBe(true);
      taken.push(status);
    }
    expect(taken).toContain("taken");
    child.kill("SIGKILL");
  },
  40_000 + LIVES * 20_000,
);

async function liveAndDie(said: Said[], conversations: Map<string, string>): Promise<void> {
  const { child, url } = await begin();
  const exited = once(child, "exit");
  setTimeout(() => child.kill("SIGKILL"), 100 + Math.random() * 400);
  while (child.exitCode === null && child.signalCode === null) {
    const clientRequestId = `request-${randomUUID()}`;
    try {
      const { body } = await post(url, "/api/agents/helper/ask", { prompt: "go", clientRequestId });
      conversations.set(clientRequestId, body.conversationId as string);
      for (let status = 202, number = 1; status === 202; number++) {
        const message = { messageId: `message-${number}`, text: `${clientRequestId} ${number}` };
        ({ status } = await post(url, `/api/query/client-requests/${clientRequestId}/steer`, message));
        if (status === 202) said.push({ clientRequestId, ...message });
        await sleep(Math.random() * 6);
      }
    } catch {
      // The service died or is dying.
    }
  }
  expect(await exited).toEqual([null, "SIGKILL"]);
}

/** What became of an accepted message, once its turn has ended. */
async function settled(url: string, clientRequestId: string, messageId: string, text: string): Promise<string> {
  for (;;) {
    const { status, body } = await post(url, `/api/query/client-requests/${clientRequestId}/steer`, { messageId, text });
    expect([status, body.duplicate]).toEqual([202, true]);
    if (body.status !== "pending") return body.status as string;
    await sleep(20);
  }
}

async function begin(): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const child = fork(join(import.meta.dirname, "processes/steered-agent.ts"), [folder.path]);
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

const headers = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };

async function post(url: string, path: string, body: object) {
  const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  return { status: answer.status, body: (await answer.json()) as Readonly<Record<string, unknown>> };
}

async function messagesOf(url: string, conversationId: string) {
  const answer = await fetch(`${url}/api/conversations/${conversationId}/messages?limit=200`, { headers });
  expect(answer.status).toBe(200);
  const { messages } = (await answer.json()) as {
    readonly messages: readonly {
      readonly role: string;
      readonly steers?: boolean;
      readonly parts: readonly { readonly text: string }[];
    }[];
  };
  return messages;
}
