import { setTimeout as sleep } from "node:timers/promises";
import { answerEvents } from "../../harness/answer-events.ts";
import { readMessagesPrompt, writeMessage } from "../../harness/echo-messages.ts";
import type { EchoTurn } from "../../harness/echo-turn.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { events, json, type Step } from "../../harness/upstream-answers.ts";
import { list, record } from "../../harness/untyped.ts";
import type { Effects } from "./effects.ts";

/** Prompts that begin with this text make the model call the tool `act` first. */
export const DO = "do ";
/** Prompts that begin with this text may reach the model more than once: those of `model` nodes, and of callers of the model proxy. */
const REPEATABLE = /^(?:Run|stream) /;
const PIECES = 30;

/** The model's final text for a prompt. */
export function answerTo(prompt: string): string {
  return [`Answer to ${prompt}:`, ...Array.from({ length: PIECES }, (_, at) => `word${at}`)].join(" ");
}

/** A model that streams some words in about half a second. The first call for a prompt counts as an effect. */
export async function startModel(effects: Effects): Promise<FakeUpstream> {
  const upstream = await startFakeUpstream();
  upstream.answerAll(async (exchange) => {
    const body: unknown = JSON.parse((await exchange.request.bytes()).toString());
    const { tools } = readMessagesPrompt(body);
    const texts = textsOf(body);
    const prompt = String(texts.findLast((text) => typeof text === "string"));
    // Results of tools of an earlier turn come before the prompt, those of this turn after it.
    const isFirst = typeof texts.at(-1) === "string";
    if (isFirst && !REPEATABLE.test(prompt)) effects.add(`turn ${prompt}`);
    const act = tools.find(({ name }) => name.endsWith("act"));
    if (isFirst && act && prompt.startsWith(DO)) {
      const calls = [{ id: `call_${exchange.request.number}`, name: act.name, input: { text: prompt } }];
      return events(answerEvents("messages", { calls }))(exchange);
    }
    const text = answerTo(prompt);
    if (record(body).stream === true) return events(slowly(messagesEvents(text)))(exchange);
    return json(200, writeMessage(turnOf(text), `msg_${exchange.request.number}`))(exchange);
  });
  return upstream;
}

/** The user's messages: a text, or undefined for the result of a tool. */
function textsOf(body: unknown): unknown[] {
  return list(record(body).messages)
    .map(record)
    .filter(({ role }) => role === "user")
    .flatMap(({ content }) => (typeof content === "string" ? [content] : list(content).map((block) => record(block).text)));
}

function* slowly(texts: readonly string[]): Generator<Step> {
  for (const text of texts) {
    yield text;
    yield () => sleep(Math.random() * 30);
  }
}

function turnOf(text: string): EchoTurn {
  return { model: "echo-large", text, calls: [], finish: "end", inputTokens: 7, outputTokens: 11 };
}
