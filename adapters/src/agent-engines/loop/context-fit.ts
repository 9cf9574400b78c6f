import type { ports } from "@portico/core";
import { cutResult, estimateTokens, isSummary, splitTurns } from "./context-window.ts";

/** The messages of one model call: earlier turns, and those of this turn. */
export interface Said {
  readonly history: readonly ports.ConversationMessage[];
  readonly now: readonly ports.ConversationMessage[];
}

/** Characters that stay of a shortened result. */
const SHORTENED_CHARACTERS = 400;
/** A change also makes room for the following calls, because each change loses the provider's prompt cache. */
const FILLED = 0.7;

/**
 * Fits one turn's model calls into the model's context. When a call would exceed it, first the results of tools in earlier turns become short,
 * oldest first, then the oldest turns are left out, and then the results of this turn become short, oldest first. What was shortened or left
 * out stays so for the rest of the turn. A summary of earlier turns is never left out.
 */
export class ContextFit {
  #limit: number;
  /** Tokens of a request besides its messages. */
  readonly #besides: number;
  /** How many tokens the provider counted per estimated one, when it counted more. */
  #factor = 1;
  #shortHistory = 0;
  #leftOut = 0;
  #shortNow = 0;
  #estimate = 0;

  /** Both in tokens. */
  constructor(limit: number, besides: number) {
    this.#limit = limit;
    this.#besides = besides;
  }

  /** The messages of the next call. */
  within(said: Said): Said {
    let fitted = this.#apply(said);
    if (this.#tokens(fitted) > this.#limit) {
      const room = this.#limit * FILLED;
      const isFull = (): boolean => this.#tokens((fitted = this.#apply(said))) > room;
      const history = resultsOf(said.history);
      while (this.#shortHistory < history && isFull()) this.#shortHistory++;
      const { turns } = splitSummary(said.history);
      while (this.#leftOut < turns.length && isFull()) this.#leftOut++;
      const seen = resultsOf(
        said.now.slice(
          0,
          said.now.findLastIndex(({ role }) => role === "assistant"),
        ),
      );
      while (this.#shortNow < seen && isFull()) this.#shortNow++;
      fitted = this.#apply(said);
    }
    this.#estimate = this.#besides + estimateTokens(fitted.history) + estimateTokens(fitted.now);
    return fitted;
  }

  /** Whether turns are left out of the messages that `within` returned last. */
  get leavesOut(): boolean {
    return this.#leftOut > 0;
  }

  /** Tokens of a request's messages. */
  get limit(): number {
    return Math.max(this.#limit / this.#factor - this.#besides, 0);
  }

  /** The history has become shorter: nothing of it is shortened or left out any more. */
  restart(): void {
    this.#shortHistory = 0;
    this.#leftOut = 0;
  }

  /** How many tokens the provider counted in the request with the messages that `within` returned last. */
  counted(tokens: number | undefined): void {
    if (tokens !== undefined && this.#estimate > 0) this.#factor = Math.max(1, tokens / this.#estimate);
  }

  /** The provider refused the messages that `within` returned last, because they were too long. The next ones are half as long. */
  tooLong(): void {
    this.#limit = Math.floor((this.#estimate * this.#factor) / 2);
  }

  #tokens({ history, now }: Said): number {
    return (this.#besides + estimateTokens(history) + estimateTokens(now)) * this.#factor;
  }

  #apply({ history, now }: Said): Said {
    const { summary, turns } = splitSummary(history);
    const skipped = resultsOf(turns.slice(0, this.#leftOut).flat());
    const kept = turns.slice(this.#leftOut).flat();
    return { history: [...summary, ...shortened(kept, this.#shortHistory - skipped)], now: shortened(now, this.#shortNow) };
  }
}

/** A conversation's summary, if it begins with one, and its turns. */
function splitSummary(history: readonly ports.ConversationMessage[]) {
  const [first] = history;
  if (!first || !isSummary(first)) return { summary: [], turns: splitTurns(history) };
  return { summary: [first], turns: splitTurns(history.slice(1)) };
}

function resultsOf(messages: readonly ports.ConversationMessage[]): number {
  return messages.reduce((sum, { parts }) => sum + parts.filter(({ type }) => type === "tool_result").length, 0);
}

/** The messages with their first `count` results of tools shortened. */
function shortened(messages: readonly ports.ConversationMessage[], count: number): readonly ports.ConversationMessage[] {
  let left = count;
  return messages.map((message) => {
    if (left <= 0 || message.role !== "tool") return message;
    return { ...message, parts: message.parts.map((part) => (part.type === "tool_result" && left-- > 0 ? short(part) : part)) };
  });
}

type ResultPart = Extract<ports.MessagePart, { type: "tool_result" }>;

const shortOnes = new WeakMap<ResultPart, ResultPart>();

function short(part: ResultPart): ResultPart {
  const known = shortOnes.get(part);
  if (known) return known;
  const content = part.result.content.map((each): ports.ToolContent =>
    each.type === "text" ? each : { type: "text", text: `[${each.mimeType}: no longer shown]` },
  );
  const made = { ...part, result: cutResult({ ...part.result, content }, SHORTENED_CHARACTERS) };
  shortOnes.set(part, made);
  return made;
}
