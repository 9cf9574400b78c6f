import { createHash } from "node:crypto";
import { writeMessageEvents } from "./echo-messages.ts";
import type { EchoTurn } from "./echo-turn.ts";
import { list, record } from "./untyped.ts";
import { events } from "./upstream-answers.ts";
import type { Answer } from "./upstream-exchange.ts";

/** A model of the Messages protocol that caches prefixes, and its counts over all calls, in tokens. */
export interface CachingModel {
  readonly answer: Answer;
  readonly counted: { read: number; written: number; plain: number };
}

/** How many blocks before a mark an earlier prefix may end. */
const LOOK_BACK = 20;
const CHARACTERS_PER_TOKEN = 4;

/**
 * Counts as the publisher of the protocol documents it. The blocks of a request are its tools, then its instructions, then its messages. A
 * mark caches all blocks up to it. A later request reads the longest cached prefix that ends at one of its marks, or up to 20 blocks before
 * one. `say` returns the answer to the request with this number, from 1.
 */
export function cachingModel(say: (number: number) => Pick<EchoTurn, "text" | "calls">): CachingModel {
  const kept = new Set<string>();
  const counted = { read: 0, written: 0, plain: 0 };
  let number = 0;
  const answer: Answer = async (exchange) => {
    const body = record(JSON.parse((await exchange.request.bytes()).toString()));
    const blocks = blocksOf(body);
    const marks = blocks.flatMap(({ isMarked }, at) => (isMarked ? [at] : []));
    if (marks.length > 4) throw new Error(`A request has ${marks.length} marks, and the protocol allows 4`);
    const found = marks.flatMap((mark) =>
      Array.from({ length: LOOK_BACK + 1 }, (_, back) => mark - back).filter((at) => at >= 0 && kept.has(blocks[at]!.prefix)),
    );
    const read = tokens(blocks.slice(0, Math.max(...found, -1) + 1));
    const upToMark = tokens(blocks.slice(0, Math.max(...marks, -1) + 1));
    const usage = { read, written: Math.max(upToMark - read, 0), plain: tokens(blocks) - Math.max(upToMark, read) };
    for (const mark of marks) kept.add(blocks[mark]!.prefix);
    counted.read += usage.read;
    counted.written += usage.written;
    counted.plain += usage.plain;
    const { text, calls } = say(++number);
    const turn: EchoTurn = {
      ...{ model: "echo-large", text, calls, inputTokens: usage.plain, outputTokens: 11 },
      finish: calls.length > 0 ? "tool" : "end",
    };
    const cache = `"input_tokens":${usage.plain},"cache_read_input_tokens":${usage.read},"cache_creation_input_tokens":${usage.written}`;
    const said = writeMessageEvents(turn, `msg_${number}`).map((event) => event.replace(/"input_tokens":\d+/, cache));
    await events(said)(exchange);
  };
  return { answer, counted };
}

interface Block {
  readonly size: number;
  /** The digest of everything up to this block. */
  readonly prefix: string;
  readonly isMarked: boolean;
}

function blocksOf(body: Readonly<Record<string, unknown>>): Block[] {
  const messages = list(body.messages).map(record);
  const parts = [
    ...list(body.tools),
    ...(typeof body.system === "string" ? [body.system] : list(body.system)),
    ...messages.flatMap(({ role, content }) =>
      (typeof content === "string" ? [content] : list(content)).map((part) => ({ role, part })),
    ),
  ];
  const digest = createHash("sha256");
  return parts.map((part) => {
    const whole = JSON.stringify(part);
    const text = whole.replaceAll(',"cache_control":{"type":"ephemeral"}', "");
    digest.update(text);
    return { size: text.length, prefix: digest.copy().digest("hex"), isMarked: whole !== text };
  });
}

function tokens(blocks: readonly Block[]): number {
  return Math.ceil(blocks.reduce((sum, { size }) => sum + size, 0) / CHARACTERS_PER_TOKEN);
}
