import type { ports } from "@portico/core";
import type { AskedCall, CalledBefore } from "./call-tools.ts";

/** What a turn of the loop keeps while it waits for a person: JSON. */
export interface Progress {
  readonly format: 1;
  /** The answer whose calls wait: its calls, what happened to each of them, its other parts, and its number among the model calls. */
  readonly calls: readonly AskedCall[];
  readonly called: readonly CalledBefore[];
  readonly parts: readonly ports.MessagePart[];
  readonly count: number;
  /** The messages that the turn adds to the conversation. The answer is the last. */
  readonly messages: readonly ports.ConversationMessage[];
  readonly toolCalls: readonly ports.TurnToolCall[];
  readonly usage: ports.TurnUsage;
  readonly summary?: ports.TurnSummary | undefined;
  readonly hasTriedSummary: boolean;
  /** Messages of the turn that the call before contained. */
  readonly askedBefore: number;
}

/** The loop's own progress. Throws TypeError for that of another engine, or of a later version. */
export function readProgress(progress: object): Progress {
  if ((progress as Partial<Progress>).format !== 1)
    throw new TypeError("The turn was paused by another engine, or by a later version");
  return progress as Progress;
}
