import type { ports } from "@portico/core";
import { undefinedAtConflict } from "@portico/core/kit";
import type { Message, Sent } from "../send-message.ts";

/** Pauses between attempts, in milliseconds. About those that Standard Webhooks recommends: the last attempt is about a day after the first. */
const PAUSES_MS = [5_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * 3_600_000, 5 * 3_600_000, 7 * 3_600_000, 10 * 3_600_000];
/** Messages that wait at the same time. Older ones are given up. */
const MOST_WAITING = 1000;
/** Messages that are older are given up, also if no process could send them meanwhile. */
const OLDEST_MS = 3 * 24 * 3_600_000;
/** Messages of one look, and those that are sent at the same time. */
const [SENT_AT_A_LOOK, SENT_AT_ONCE] = [64, 8];
const ALL_AT_ONCE = 1000;

/** A message that waits to be delivered. */
interface Waiting {
  /** Milliseconds since 1970: when it was written. */
  readonly at: number;
  readonly body: string;
  /** Attempts that failed. */
  readonly attempts: number;
  /** When it is sent next. */
  readonly dueAt: number;
}

/** What came of messages, for the log and the counts. */
export interface Outcomes {
  delivered(): void;
  /** An attempt failed, and another one is planned. */
  failed(code: string): void;
  givenUp(count: number, code: string): void;
}

/**
 * Messages that wait in the records until the receiver has them, or they are given up. A kill between an attempt and its record repeats the attempt
 * with the same id.
 */
export function createOutbox({ records, clock }: { readonly records: ports.Records; readonly clock: ports.Clock }) {
  const waiting = records.collection<Waiting>({ name: "notifications", indexes: { byDue: ["dueAt"], byAge: ["at"] } });

  /** Sends a message, and notes the end of the attempt. */
  const attempt = async (
    { id, value, version }: ports.Stored<Waiting>,
    send: (message: Message) => Promise<Sent>,
    outcomes: Outcomes,
  ): Promise<void> => {
    const sent = await send({ id, body: value.body });
    if (sent.isDelivered) {
      await waiting.remove(id, version).catch(undefinedAtConflict);
      return outcomes.delivered();
    }
    const pause = PAUSES_MS[value.attempts];
    if (sent.isFinal || pause === undefined) {
      await waiting.remove(id, version).catch(undefinedAtConflict);
      return outcomes.givenUp(1, sent.code);
    }
    const next = { ...value, attempts: value.attempts + 1, dueAt: clock.now() + pause };
    await waiting.put(id, next, version).catch(undefinedAtConflict);
    outcomes.failed(sent.code);
  };

  return {
    /** The write of a message. The same id is the same message. */
    write(id: string, body: string): ports.Write {
      const at = clock.now();
      return waiting.write.put(id, { at, body, attempts: 0, dueAt: at });
    },

    /** Sends what is due, the oldest first, until the signal aborts. */
    async deliver(send: (message: Message) => Promise<Sent>, outcomes: Outcomes, signal: AbortSignal): Promise<void> {
      const { items } = await waiting.query({ order: { by: "dueAt", direction: "ascending" }, limit: SENT_AT_A_LOOK });
      const due = items.filter(({ value }) => value.dueAt <= clock.now());
      for (let from = 0; from < due.length && !signal.aborted; from += SENT_AT_ONCE)
        await Promise.all(due.slice(from, from + SENT_AT_ONCE).map((each) => attempt(each, send, outcomes)));
    },

    /** Gives up messages that are too old, and the oldest of too many. */
    async bound(outcomes: Outcomes, signal: AbortSignal): Promise<void> {
      const all: { readonly id: string; readonly at: number }[] = [];
      const order = { by: "at", direction: "ascending" } as const;
      for (let after: ports.Place | undefined; ;) {
        const { places, isLast } = await waiting.places({ order, limit: ALL_AT_ONCE, ...(after && { after }) });
        all.push(...places.map(({ id, value }) => ({ id, at: Number(value) })));
        after = places.at(-1);
        if (isLast || !after || signal.aborted) break;
      }
      const oldest = clock.now() - OLDEST_MS;
      const tooMany = all.length - MOST_WAITING;
      const left = all.filter(({ at }, index) => index < tooMany || at < oldest);
      for (const { id } of left) await waiting.remove(id);
      if (left.length > 0) outcomes.givenUp(left.length, "outbox_full");
    },
  };
}
