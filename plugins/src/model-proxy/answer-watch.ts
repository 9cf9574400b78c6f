import type { Transform } from "node:stream";
import type { ports } from "@portico/core";
import {
  ANSWER_BYTES,
  createDecoder,
  isJsonObject,
  type Json,
  type JsonObject,
  mergeUsage,
  readChatUsage,
  readMessagesUsage,
  type Usage,
} from "@portico/core/model-protocols";
import { WATCHED_AHEAD_BYTES } from "./limits.ts";
import type { Protocol } from "./protocol.ts";

/** The end of an answer, as its last bytes show it. */
export interface AnswerEnding {
  readonly usage: Usage | undefined;
  /** `whole`: it ended as its protocol requires; `error`: it ended with an error from the upstream; `open`: it did not end. */
  readonly state: "whole" | "error" | "open";
}

/** Bytes at the start that are kept: the first event of a Messages stream has the input counts. */
const HEAD_BYTES = 4 * 1024;
/** Bytes at the end that are kept: in both protocols the last events, or the last members, have the end and the usage. */
const TAIL_BYTES = 16 * 1024;
/** Number of last characters of a stream that are searched for its end. */
const END_CHARACTERS = 4 * 1024;
/** The end marker of Chat Completions, with the lines around it. */
const DONE_CHARACTERS = 64;
/** Maximum places that are tried before usage counts as not reported. */
const MOST_TRIES = 8;
const USAGE = '"usage"';

/** Reads the usage and the end of an answer that is forwarded unchanged. It never delays or breaks the answer. */
export interface AnswerWatch {
  readonly isStream: boolean;
  /** Whether it reads a decompressed copy, which takes longer than the answer itself. */
  readonly isBehind: boolean;
  push(chunk: Buffer): void;
  /** Instead of `push`, for an answer in one piece. `text` has one character per byte. */
  pushWhole(bytes: Buffer, text: string): void;
  /** Call it after the last chunk. Resolves when everything has been read; undefined if that is already the case. */
  settled(): Promise<void> | undefined;
  /** The state of the answer so far; undefined if it could not be read. */
  ending(): AnswerEnding | undefined;
  /** Releases its resources. Safe to call more than once. */
  close(): void;
}

/** Undefined for answers that cannot be read: unknown media types and encodings. */
export function watchAnswer(protocol: Protocol, headers: ports.ModelAnswer["headers"]): AnswerWatch | undefined {
  const type = headers["content-type"];
  const name = typeof type === "string" ? type.trim().toLowerCase() : "";
  const isStream = name.startsWith("text/event-stream");
  if (!isStream && !name.startsWith("application/json")) return undefined;
  const edges = new AnswerEdges();
  const ending = () => (isStream ? readStreamEnding : readWholeEnding)(protocol, edges.read());
  const decoder = decoderFor(headers);
  if (decoder === "unknown") return undefined;
  if (decoder) return { isStream, isBehind: true, ...watchDecoded(decoder, edges, ending) };
  return {
    isStream,
    isBehind: false,
    push: (chunk) => edges.push(chunk),
    pushWhole: (_bytes, text) => edges.hold(text),
    settled: () => undefined,
    ending,
    close() {},
  };
}

/** A compressed answer is forwarded unchanged. A copy is decompressed outside the main thread. */
function watchDecoded(
  decoder: Transform,
  edges: AnswerEdges,
  ending: () => AnswerEnding,
): Omit<AnswerWatch, "isStream" | "isBehind"> {
  let size = 0;
  let isReadable = true;
  const giveUp = () => {
    isReadable = false;
    decoder.destroy();
  };
  decoder.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > ANSWER_BYTES) giveUp();
    else edges.push(chunk);
  });
  decoder.on("error", giveUp);
  const push = (chunk: Buffer) => {
    if (!isReadable) return;
    // The reader of the answer does not wait for this copy.
    if (decoder.writableLength > WATCHED_AHEAD_BYTES) giveUp();
    else decoder.write(chunk);
  };
  return {
    push,
    pushWhole: push,
    settled() {
      if (!isReadable) return undefined;
      return new Promise((resolve) => {
        decoder.once("end", resolve).once("close", resolve);
        decoder.end();
      });
    },
    ending: () => (isReadable ? ending() : undefined),
    close: () => void decoder.destroy(),
  };
}

function decoderFor(headers: ports.ModelAnswer["headers"]): Transform | "unknown" | undefined {
  try {
    return createDecoder(headers["content-encoding"]);
  } catch {
    return "unknown";
  }
}

/** The first and the last bytes of an answer. They overlap if the answer is short. */
interface EdgeTexts {
  readonly head: string;
  readonly tail: string;
}

/**
 * Keeps the first and the last bytes of an answer while it is forwarded. It searches, copies and decodes nothing until they are requested.
 * Callers must not reuse their chunks.
 */
class AnswerEdges {
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  readonly #tail: Buffer[] = [];
  #tailBytes = 0;
  #isCut = false;
  #whole: string | undefined;

  /** The whole answer, with one character per byte. */
  hold(whole: string): void {
    this.#whole = whole;
  }

  push(chunk: Buffer): void {
    if (this.#headBytes < HEAD_BYTES) {
      this.#head.push(chunk);
      this.#headBytes += chunk.length;
    }
    this.#tail.push(chunk);
    this.#tailBytes += chunk.length;
    while (this.#tailBytes - this.#tail[0]!.length >= TAIL_BYTES) {
      this.#tailBytes -= this.#tail.shift()!.length;
      this.#isCut = true;
    }
  }

  /** The edges as text with one character per byte. JSON stays valid, and its numbers and ASCII names do not change. */
  read(): EdgeTexts {
    if (this.#whole !== undefined) return { head: this.#whole.slice(0, HEAD_BYTES), tail: this.#whole.slice(-TAIL_BYTES) };
    const tail = text(this.#tail, Math.max(0, this.#tailBytes - TAIL_BYTES));
    return { head: this.#isCut ? text(this.#head, 0, HEAD_BYTES) : tail.slice(0, HEAD_BYTES), tail };
  }
}

function text(chunks: readonly Buffer[], from: number, to?: number): string {
  const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  return bytes.toString("latin1", from, to);
}

/**
 * Reads the end of a stream so far. The searched names include their quotes. JSON escapes quotes inside strings, so text of the model never
 * matches.
 */
function readStreamEnding(protocol: Protocol, { head, tail }: EdgeTexts): AnswerEnding {
  if (protocol === "chat-completions")
    return { usage: lastUsage(tail, ({ usage }) => readChatUsage(usage)), state: chatState(tail.slice(-END_CHARACTERS)) };
  const state = messagesState(tail);
  const last = lastUsage(tail, ({ type, usage }) => (type === "message_delta" ? readMessagesUsage(usage) : undefined));
  const first = firstUsage(head);
  // The first event has a preliminary output count. It is used only if a complete stream reports no other count.
  return { usage: mergeUsage(state === "whole" ? first : first && { ...first, output: undefined }, last), state };
}

/** Reads the end of a whole answer in JSON. */
function readWholeEnding(protocol: Protocol, { tail }: EdgeTexts): AnswerEnding {
  const read = protocol === "messages" ? readMessagesUsage : readChatUsage;
  // From a member of the outermost object on, the text closes exactly one brace, so with one opening brace it is a valid object.
  const rest = lastUsageIn(tail, (at) => parsed(`{${tail.slice(at)}`));
  return { usage: rest && read(rest.usage), state: "whole" };
}

/** Searches for a normal end first, because other ends are rare and take longer to find. */
function messagesState(tail: string): AnswerEnding["state"] {
  if (tail.lastIndexOf('"message_stop"') >= 0) return "whole";
  const end = tail.slice(-END_CHARACTERS);
  return /^event:\s*error\b/m.test(end) || /^data:\s*\{\s*"type"\s*:\s*"error"/m.test(end) ? "error" : "open";
}

function chatState(end: string): AnswerEnding["state"] {
  const isTold = end.includes('"error"');
  if (isTold && (/^data:\s*\{\s*"error"\s*:/m.test(end) || /"finish_reason"\s*:\s*"error"/.test(end))) return "error";
  return /^data:\s*\[DONE\]/m.test(end.slice(-DONE_CHARACTERS)) || /"finish_reason"\s*:\s*"/.test(end) ? "whole" : "open";
}

/** Usage of the last event that has some. Counts are cumulative in both protocols. */
function lastUsage(tail: string, read: (event: JsonObject) => Usage | undefined): Usage | undefined {
  return lastUsageIn(tail, (at) => {
    const event = eventAround(tail, at);
    return event && read(event);
  });
}

/** Usage of a Messages stream's first event. */
function firstUsage(head: string): Usage | undefined {
  const at = head.indexOf(USAGE);
  const event = at < 0 ? undefined : eventAround(head, at);
  return event?.type === "message_start" && isJsonObject(event.message) ? readMessagesUsage(event.message.usage) : undefined;
}

/** What `read` finds at the last position of `"usage"` where it finds something. */
function lastUsageIn<T>(text: string, read: (at: number) => T | undefined): T | undefined {
  let at = text.length;
  for (let tries = 0; tries < MOST_TRIES && at > 0; tries += 1) {
    at = text.lastIndexOf(USAGE, at - 1);
    const found = at < 0 ? undefined : read(at);
    if (found !== undefined || at < 0) return found;
  }
  return undefined;
}

/** The event whose data line contains this place. */
function eventAround(text: string, at: number): JsonObject | undefined {
  const from = text.lastIndexOf("\n", at) + 1;
  const to = text.indexOf("\n", at);
  const line = text.slice(from, to < 0 ? text.length : to);
  return line.startsWith("data:") ? parsed(line.slice("data:".length)) : undefined;
}

function parsed(text: string): JsonObject | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
