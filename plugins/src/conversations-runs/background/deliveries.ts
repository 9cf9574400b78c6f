import { type ports, readPages } from "@portico/core";
import { undefinedAtConflict } from "@portico/core/kit";
import type { UserMessage } from "../turns/user-message.ts";
import type { AcceptedTurn } from "./background-turn.ts";

export type Deliveries = ReturnType<typeof createDeliveries>;

/** How far the deliveries of an agent were erased. */
interface DeliverySweep {
  /** The sequence number of the first delivery that may be there. */
  readonly next: number;
}

const ERASED_AT_ONCE = 200;

/** Messages that agents delivered from the background, by agent (specification 2.6). */
export function createDeliveries({
  records,
  log,
  clock,
  ids,
}: {
  readonly records: ports.Records;
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
}) {
  const sweeps = records.collection<DeliverySweep>({ name: "delivery-sweeps" });
  return {
    /** Durable when it resolves. */
    async add({ agentId, runId, origin }: AcceptedTurn, { text, ...delivery }: UserMessage): Promise<void> {
      const entry: ports.Delivery = {
        id: ids.id("dlv_"),
        runId,
        deliveredAt: new Date(clock.now()).toISOString(),
        ...origin,
        delivery,
        ...(text !== undefined && { text }),
      };
      await log.append(streamOf(agentId), entry);
    },

    /**
     * Note that an agent may have deliveries, before runs that delivered are removed: the agent itself may not exist any more, and the log lists
     * no streams.
     */
    async note(agentId: string): Promise<void> {
      // A conflict: another process noted it meanwhile.
      if (!(await sweeps.get(agentId))) await sweeps.put(agentId, { next: 1 }, "absent").catch(undefinedAtConflict);
    },

    /** The noted agents, removed ones included, in pages. */
    async *noted(): AsyncGenerator<readonly string[], void> {
      for await (const page of readPages(sweeps, {})) yield page.map(({ id }) => id);
    },

    /** Erases deliveries before this time (ISO 8601), the oldest first, in pieces. The next call continues after them. */
    async eraseBefore(agentId: string, before: string, signal: AbortSignal): Promise<void> {
      const stream = streamOf(agentId);
      for (;;) {
        const next = (await sweeps.get(agentId))?.value.next ?? 1;
        const old: number[] = [];
        for await (const entry of log.read(stream, { from: next, limit: ERASED_AT_ONCE, signal })) {
          if (!entry.damaged && (entry.entry as unknown as ports.Delivery).deliveredAt >= before) break;
          old.push(entry.sequence);
        }
        if (old.length === 0) return;
        await log.erase(stream, old);
        await sweeps.put(agentId, { next: old.at(-1)! + 1 });
        if (old.length < ERASED_AT_ONCE) return;
      }
    },

    /** All deliveries of an agent, the oldest first, with their positions. */
    async *all(
      agentId: string,
      signal: AbortSignal,
    ): AsyncGenerator<{ readonly sequence: number; readonly delivery: ports.Delivery }> {
      for await (const entry of log.read(streamOf(agentId), { signal })) {
        if (!entry.damaged) yield { sequence: entry.sequence, delivery: entry.entry as unknown as ports.Delivery };
      }
    },

    /** Erase deliveries by their positions. */
    erase: (agentId: string, sequences: readonly number[]): Promise<void> => log.erase(streamOf(agentId), sequences),

    /** The newest first. A damaged entry counts, and is left out. */
    async page(agentId: string, { offset, limit, signal }: ports.DeliveryPage) {
      const stream = streamOf(agentId);
      const total = await log.count(stream);
      const items = async function* (): AsyncIterable<ports.Delivery> {
        if (offset >= total) return;
        for await (const entry of log.read(stream, { from: total - offset, limit, backwards: true, signal })) {
          if (!entry.damaged) yield entry.entry as unknown as ports.Delivery;
        }
      };
      return { items: items(), total };
    },
  };
}

const streamOf = (agentId: string): string => `deliveries/${agentId}`;
