import { callerOf, definePlugin, ownerScheme, ports } from "@portico/core";
import { logConfig } from "./config.ts";
import { logContract } from "./contract.ts";
import { logErrors } from "./errors.ts";
import { followLines } from "./follow-lines.ts";
import { Readers } from "./readers.ts";

export type { LineSource } from "./config.ts";

/** `GET /api/log` on surface `agent`: the lines of the log of the answering process as they are written, for the owner. */
export const logPage = definePlugin({
  name: "log",
  summary: "The log lines of the answering process, as they are written.",
  config: logConfig,
  needs: { identity: ports.identity, ids: ports.ids },
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
  setup({ ids }, { lines, process: { host, pid } }) {
    const readers = new Readers();
    // Positions of another process, or of the process before a restart, mean other lines.
    const process = { id: ids.uuid(), host, pid };
    return {
      follow({ query: { last, ...wanted }, who, head, signal, say, fail }) {
        const leave = head.method === "HEAD" ? () => {} : readers.enter();
        if (!leave) throw fail.too_many_readers();
        const left = new AbortController();
        const events = followLines({
          ...{ lines, process, wanted, last, say, lastEventId: head.header("last-event-id") },
          // A reader whose token has ended gets no further line.
          signal: AbortSignal.any([signal, left.signal, ...(who.ended ? [who.ended] : [])]),
        });
        const end = () => {
          left.abort();
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
