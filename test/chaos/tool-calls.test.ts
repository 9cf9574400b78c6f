import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { io, type Socket } from "socket.io-client";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startBody, TOKENS } from "../harness/agent-app.ts";
import { answerEvents } from "../harness/answer-events.ts";
import { type FakeUpstream, startFakeUpstream } from "../harness/fake-upstream.ts";
import type { Answer } from "../harness/upstream-exchange.ts";
import { temporaryFolder } from "../harness/portico-process.ts";
import { events } from "../harness/upstream-answers.ts";

const LIVES = process.env.PORTICO_LONG ? 40 : 2;
/** Conversations that work at the same time in one life, and calls of each turn. */
const TURNS = 12;
const CALLS = 3;

const folder = temporaryFolder();
const happened = join(folder.path, "effects");
let upstream: FakeUpstream;
beforeAll(async () => {
  upstream = await startFakeUpstream();
});
beforeEach(() => upstream.reset());
const children = new Set<ChildProcess>();
const sockets = new Set<Socket>();
afterAll(async () => {
  for (const socket of sockets) socket.disconnect();
  for (const child of children) child.kill("SIGKILL");
  await upstream.close();
  folder.remove();
});

const act = (id: string, input: object) => events(answerEvents("messages", { calls: [{ id, name: "act", input }] }));
const effects = () => readFileSync(happened, "utf8").split("\n").filter(Boolean);
const textOf = ({ result }: any): string => result.content[0].text;

describe("a process that is killed while a tool runs", () => {
  it.each(["before", "after"] as const)(
    "%s the tool took effect: the call is in the conversation, its effect unknown; what finished earlier has its result",
    async (dies) => {
      upstream.answerNext(
        act(`call_first_${dies}`, { of: `first ${dies}` }),
        act(`call_second_${dies}`, { of: `second ${dies}`, dies }),
      );
      const first = await service();
      const exited = once(first.child, "exit");
      const socket = await connect(first.url);
      const started = new Promise<any>((resolve) => socket.once("query:started", resolve));
      await submit(first.url, socket, `work ${dies}`);
      const { runId, conversationId } = await started;
      expect(await exited).toEqual([null, "SIGKILL"]);

      const second = await service();
      expect(effects().filter((of) => of.endsWith(dies))).toEqual([
        `first ${dies}`,
        ...(dies === "after" ? [`second ${dies}`] : []),
      ]);
      const { messages } = await call(second.url, `/api/conversations/${conversationId}/messages`);
      expect(messages.map(({ role }: any) => role)).toEqual(["user", "assistant", "tool", "assistant", "tool"]);
      const results = messages.flatMap(({ role, parts }: any) => (role === "tool" ? parts : []));
      expect(results.map((part: any) => [part.callId, textOf(part), part.result.isError])).toEqual([
        [`call_first_${dies}`, `did first ${dies}`, false],
        [`call_second_${dies}`, expect.stringContaining("effect is unknown"), true],
      ]);
      const { receipts } = await call(second.url, `/api/runs/${runId}/receipt`);
      expect(receipts[0]).toMatchObject({
        outcome: { status: "failed" },
        tool_calls: [{ is_error: false }, { arguments: { of: `second ${dies}`, dies }, is_error: true }],
      });

      // The model of the next turn is told about it.
      const back = await connect(second.url);
      const ended = new Promise<any>((resolve) => back.once("query:complete", resolve));
      await submit(second.url, back, "and now?", { conversationId });
      await ended;
      const asked = (await (await upstream.request(3)).bytes()).toString();
      expect(asked).toMatch(/did first.*effect is unknown.*and now/);
    },
    60_000,
  );
});

it(
  `${LIVES} kills at any instant while agents use tools: each effect has its call in a conversation, none happens twice, and what is told of a result is true`,
  async () => {
    upstream.answerAll(threeCalls);
    for (let life = 0; life < LIVES; life++) {
      const { child, url } = await service();
      const exited = once(child, "exit");
      const socket = await connect(url);
      const asked = upstream.requests.length;
      for (let turn = 0; turn < TURNS; turn++) {
        void submit(url, socket, `life${life}turn${turn}`).catch(() => {});
      }
      // At some moment during the work, independent of the machine's speed.
      await upstream.request(asked + Math.ceil(TURNS * (1 + Math.random() * (CALLS - 1))));
      setTimeout(() => child.kill("SIGKILL"), Math.random() * 20);
      expect(await exited).toEqual([null, "SIGKILL"]);
    }
    const last = await service();
    await atRest(last.url);
    const conversations = await allConversations(last.url);
    const calls: { readonly of: string; readonly told: string }[] = [];
    for (const { conversationId } of conversations) {
      const { messages } = await call(last.url, `/api/conversations/${conversationId}/messages?limit=200`);
      const parts = messages.flatMap((message: any) => message.parts);
      for (const { type, callId, arguments: args } of parts)
        if (type === "tool_call")
          calls.push({ of: args.of, told: textOf(parts.find((each: any) => each.result && each.callId === callId)) });
    }
    const mine = effects();
    expect(new Set(mine).size, "nothing took effect twice").toBe(mine.length);
    expect(mine.filter((of) => of.startsWith("life")).length).toBeGreaterThan(0);
    for (const of of mine)
      expect(
        calls.filter((each) => each.of === of),
        "each effect has its call",
      ).toHaveLength(1);
    for (const { of, told } of calls)
      if (told === `did ${of}`) expect(mine, "what was told has happened").toContain(of);
      else expect(told).toContain("effect is unknown");
  },
  30_000 + LIVES * 30_000,
);

/** A model that calls the tool three times, one after another, and is done. */
const threeCalls: Answer = async (exchange) => {
  const body = (await exchange.request.bytes()).toString();
  const turns = JSON.parse(body).messages as any[];
  const said = turns.map(({ content }) => (typeof content === "string" ? content : String(content[0].text)));
  const prompt = said.findLast((text) => text.startsWith("life"))!;
  const done = body.split(`"tool_use_id":"call_${prompt}_`).length - 1;
  const id = `call_${prompt}_${done + 1}`;
  const answer = done < CALLS ? act(id, { of: `${prompt}_${done + 1}` }) : events(answerEvents("messages", { text: "done" }));
  await answer(exchange);
};

interface Service {
  readonly child: ChildProcess;
  readonly url: string;
}

let running: Promise<Service> | undefined;

/** The living process, or a new one if it was killed. */
function service(): Promise<Service> {
  return (running ??= begin());
}

async function begin(): Promise<Service> {
  const child = fork(join(import.meta.dirname, "processes/tool-service.ts"), [folder.path, happened, upstream.baseUrl]);
  children.add(child);
  child.once("exit", () => {
    children.delete(child);
    running = undefined;
  });
  const [url] = (await once(child, "message")) as [string];
  return { child, url };
}

async function connect(url: string): Promise<Socket> {
  const socket = io(url, { auth: { token: TOKENS.owner, clientInstanceId: `chaos-${randomUUID()}` }, reconnection: false });
  sockets.add(socket);
  await once(socket as never, "connect");
  return socket;
}

const headers = { "content-type": "application/json", "x-agent-service-token": TOKENS.owner };

async function submit(url: string, socket: Socket, prompt: string, options: object = {}): Promise<void> {
  const body = startBody({ id: socket.id ?? "gone" }, prompt, {}, options);
  const answer = await fetch(`${url}/api/query/start`, { method: "POST", headers, body: JSON.stringify(body) });
  await answer.body?.cancel();
}

async function call(url: string, path: string): Promise<any> {
  const answer = await fetch(`${url}${path}`, { headers });
  expect(answer.status).toBe(200);
  return answer.json();
}

async function allConversations(url: string): Promise<readonly { readonly conversationId: string }[]> {
  const all = [];
  for (let after: string | undefined = ""; after !== undefined;) {
    const query: string = after === "" ? "" : `&after=${encodeURIComponent(after)}`;
    const page = await call(url, `/api/conversations?limit=200${query}`);
    all.push(...page.conversations);
    after = page.next;
  }
  return all;
}

/** Resolves when all work that earlier processes accepted has ended. */
async function atRest(url: string): Promise<void> {
  let seen = -1;
  await expect
    .poll(
      async () => {
        const { runs } = await call(url, "/api/runs?limit=1000");
        const isAtRest = runs.length === seen && runs.every(({ status }: any) => status !== "running");
        seen = runs.length;
        return isAtRest;
      },
      { interval: 200, timeout: 30_000 },
    )
    .toBe(true);
}
