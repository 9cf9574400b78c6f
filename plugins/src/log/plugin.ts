import { callerOf, definePlugin, optional, ownerScheme, ports } from "@portico/core";
import { logConfig } from "./config.ts";
import { logContract } from "./contract.ts";
import { logErrors } from "./errors.ts";
import { followLines } from "./follow-lines.ts";
import { LineSender } from "./line-sender.ts";
import { LinesElsewhere } from "./lines-elsewhere.ts";
import { Readers } from "./readers.ts";

export type { LineSource } from "./config.ts";

/**
 * `GET /api/log` on surface `agent`: the lines of the log of the answering process as they are written, for the owner. With an adapter of the port
 * `bus`, also those of all processes.
 */
export const logPage = definePlugin({
  name: "log",
  summary: "The log lines of the answering process or of all processes, as they are written.",
  config: logConfig,
  needs: { identity: ports.identity, ids: ports.ids, clock: ports.clock, bus: optional(ports.bus) },
  contract: logContract,
  security: { owner: ownerScheme },
  guards: ({ identity }) => ({
    async owner(head, signal) {
      const caller = await callerOf(head, identity, signal);
      if (!caller) throw logErrors.unauthorized();
      if (caller.role !== "owner") throw logErrors.owner_required();
      return caller;
    },
  }),
  setup({ ids, clock, bus }, { lines, areas, process: { host, pid } }, scope) {
    const readers = new Readers();
    // Positions of another process, or of the process before a restart, mean other lines.
    const process = { id: ids.uuid(), host, pid };
    const others = bus && new LinesElsewhere({ bus, clock, process });
    if (bus) new LineSender({ bus, clock, lines, process }).open(scope);
    return {
      follow({ query: { last, processes, ...wanted }, who, head, signal, say, fail }) {
        const leave = head.method === "HEAD" ? () => {} : readers.enter();
        if (!leave) throw fail.too_many_readers();
        const left = new AbortController();
        const elsewhere = processes === "all" && head.method !== "HEAD" ? others?.open(wanted) : undefined;
        const events = followLines({
          ...{ lines, areas: areas(), process, elsewhere, wanted, last, say, lastEventId: head.header("last-event-id") },
          // A reader whose token has ended gets no further line.
          signal: AbortSignal.any([signal, left.signal, ...(who.ended ? [who.ended] : [])]),
        });
        const end = () => {
          left.abort();
          elsewhere?.close();
          leave();
        };
        return endingWith(events, end);
      },
    };
  },
});

/** The same events. `end` is called when they end or fail, and when their reader leaves: also before the first event, and while one is awaited. */
function endingWith<T>(events: AsyncGenerator<T, void>, end: () => void): AsyncIterable<T> {
  const ended = async (step: Promise<IteratorResult<T, void>>) => {
    let isOver = true;
    try {
      const result = await step;
      isOver = result.done === true;
      return result;
    } finally {
      if (isOver) end();
    }
  };
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => ended(events.next()),
      return() {
        end();
        return events.return();
      },
    }),
  };
}
