import type { ports } from "@portico/core";
import type { UserMessage } from "../turns/user-message.ts";
import type { AcceptedTurn } from "./background-turn.ts";

export type Deliveries = ReturnType<typeof createDeliveries>;

/** What agents delivered from the background, by agent (specification 2.6). */
export function createDeliveries({
  log,
  clock,
  ids,
}: {
  readonly log: ports.EventLog;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
}) {
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

    /** The newest first. What is damaged counts, and is left out. */
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
