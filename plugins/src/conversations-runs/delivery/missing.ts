import type { TurnEvent } from "../turns/turn.ts";

/** The number of events that a client has if the `seq` of its last message is this; 0 without a message. */
export function countOf(seq: number): number {
  // Before the first message, a turn sends the event of its beginning.
  return seq === 0 ? 0 : seq + 1;
}

/** The number of events of its turn that a client with this event has; undefined for an end, after which nothing is missing. */
export function countAfter(event: TurnEvent): number | undefined {
  if (event.event === "query:message") return event.data.message.seq + 1;
  return isEnd(event) ? undefined : 1;
}

/** Whether a client that has `count` events of a turn, and not its end, misses this one. */
export function isMissing(event: TurnEvent, count: number): boolean {
  // A process that died may have written fewer events than it sent, so the numbers of an end are not usable here.
  return isEnd(event) || count < countAfter(event)!;
}

export function isEnd({ event }: TurnEvent): boolean {
  return event === "query:complete" || event === "query:error";
}
