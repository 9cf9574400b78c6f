import type { ModelEvent } from "../model-events.ts";

/**
 * Ends the text of an answer before the first complete one of these stop sequences, for a protocol that has none. The provider still writes its answer to
 * the end: only its end tells the usage. Returns a function that takes the events of the answer in order. A text that may be the beginning
 * of a sequence waits for the next event.
 */
export function stopAt(sequences: readonly string[]): (events: readonly ModelEvent[]) => readonly ModelEvent[] {
  let held = "";
  let stopSequence: string | undefined;

  const take = (event: ModelEvent): readonly ModelEvent[] => {
    if (stopSequence !== undefined) return afterStop(event, stopSequence);
    if (event.type !== "text") {
      const text = held;
      held = "";
      return text === "" ? [event] : [{ type: "text", text }, event];
    }
    const text = held + event.text;
    const found = firstOf(sequences, text);
    stopSequence = found?.sequence;
    const end = found?.at ?? text.length - openLength(sequences, text);
    held = found ? "" : text.slice(end);
    return end === 0 ? [] : [{ type: "text", text: text.slice(0, end) }];
  };
  return sequences.length === 0 ? (events) => events : (events) => events.flatMap(take);
}

function afterStop(event: ModelEvent, stopSequence: string): readonly ModelEvent[] {
  if (event.type === "usage") return [event];
  // The caller has its whole answer, so it makes no difference how the rest ended.
  return event.type === "finish" || event.type === "error" ? [{ type: "finish", reason: "stop-sequence", stopSequence }] : [];
}

/** The sequence that is complete first, where a model would stop. Of two that end together, the longer one. */
function firstOf(sequences: readonly string[], text: string): { readonly at: number; readonly sequence: string } | undefined {
  let first: { readonly at: number; readonly sequence: string } | undefined;
  let firstEnd = Number.POSITIVE_INFINITY;
  for (const sequence of sequences) {
    const at = text.indexOf(sequence);
    const end = at + sequence.length;
    if (at === -1 || end > firstEnd || (end === firstEnd && first !== undefined && at >= first.at)) continue;
    first = { at, sequence };
    firstEnd = end;
  }
  return first;
}

/** Characters at the end of the text that may begin a sequence. */
function openLength(sequences: readonly string[], text: string): number {
  let longest = 0;
  for (const sequence of sequences)
    for (let length = Math.min(sequence.length - 1, text.length); length > longest; length -= 1)
      if (text.endsWith(sequence.slice(0, length))) longest = length;
  return longest;
}
