import type { ports } from "@portico/core";
import type { Acceptance, Journal } from "./journal.ts";

/** Has no records: removing a missing one is a write without effect. */
const NOTHING = "engine-conditions";

/**
 * A journal without a shared store: the records are written before the work is accepted, and a conflict prevents the acceptance.
 * A process that dies between the two leaves records of work that it never acknowledged.
 */
export function writeRecordsFirst(
  journal: Omit<Journal, "held" | "begun" | "ended" | "nextAfter">,
  records: ports.Records,
): Journal {
  const accepting = new Map<string, Promise<unknown>>();

  const acceptAfter = async (work: Parameters<Journal["accept"]>[0], writes: readonly ports.Write[]): Promise<Acceptance> => {
    if (journal.find(work.id)) return { duplicate: true, places: [] };
    await records.batch(writes);
    return journal.accept(work, []);
  };

  const held = (work: number, isLost: () => boolean): ports.Write => {
    const { remove } = records.collection({ name: NOTHING }).write;
    const [without, impossible] = [remove(String(work)), remove(String(work), 0)];
    // Looked at when the batch is written, not when the function takes the condition out of its context.
    return {
      ...without,
      get expected() {
        return isLost() ? impossible.expected : without.expected;
      },
    };
  };

  return {
    ...journal,
    held,
    begun: held,
    next: undefined,
    ended: (work, _endedAt, isLost) => held(work, isLost),
    nextAfter: () => undefined,
    async accept(work, writes) {
      // One at a time per ID. Otherwise the records of a duplicate would be written while the first is being accepted.
      for (let earlier = accepting.get(work.id); earlier; earlier = accepting.get(work.id)) await earlier.catch(() => {});
      const accepted = acceptAfter(work, writes);
      accepting.set(work.id, accepted);
      try {
        return await accepted;
      } finally {
        accepting.delete(work.id);
      }
    },
  };
}
