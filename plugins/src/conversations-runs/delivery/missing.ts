import type { TurnEvent } from "../turns/turn.ts";

/** How many events a client has that says `seq` of the last message it has; 0 for none. */
export function countOf(seq: number): number {
  // Before the first message, a turn tells that it began.
  return seq === 0 ? 0 : seq + 1;
}

/** How many events of its turn a client has that has this one; undefined for an end, after which nothing is open. */
export function countAfter(event: TurnEvent): number | undefined {
  if (event.event === "query:message") return event.data.message.seq + 1;
  return isEnd(event) ? undefined : 1;
}

/** Whether a client that has `count` events of a turn, and not its end, misses this one. */
export function isMissing(event: TurnEvent, count: number): boolean {
  // A process that died may have written less than it told: the numbers of an end say nothing here.
  return isEnd(event) || count < countAfter(event)!;
}

export function isEnd({ event }: TurnEvent): boolean {
  return event === "query:complete" || event === "query:error";
}
