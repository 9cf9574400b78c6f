import { definePlugin, optional, ownerGuard, ownerScheme, ports } from "@portico/core";
import * as v from "valibot";
import { logContract, logErrors, MOST_READERS } from "./contract.ts";
import { followLines } from "./follow-lines.ts";
import type { LineSource } from "./lines.ts";
import { LineSender, LinesElsewhere } from "./other-processes.ts";

export type { LineSource } from "./lines.ts";

/**
 * `GET /api/log` on surface `agent`: the lines of the log of the answering process as they are written, for the owner. With an adapter of the port
 * `bus`, also those of all processes.
 */
export const logPage = definePlugin({
  name: "log",
  summary: "The log lines of the answering process or of all processes, as they are written.",
  config: v.strictObject({
    /** `createRecentLines()` of `@portico/adapters/telemetry/recent-lines` creates one. */
    lines: v.custom<LineSource>(
      (value) => typeof (value as LineSource | undefined)?.after === "function",
      "the newest lines of a log",
    ),
    /** Areas of the service that readers are told of, with those of the kept lines. Default: none. */
    areas: v.optional(
      v.custom<() => readonly string[]>((value) => typeof value === "function", "a function that returns names"),
      () => () => [],
    ),
    /** Names the answering process, which is one of several in a cluster. */
    process: v.strictObject({ host: v.string(), pid: v.number() }),
  }),
  needs: { identity: ports.identity, ids: ports.ids, clock: ports.clock, bus: optional(ports.bus) },
  contract: logContract,
  security: { owner: ownerScheme },
  guards: ({ identity }) => ({ owner: ownerGuard(identity, logErrors) }),
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

/** Counts the readers of a log. */
class Readers {
  #count = 0;

  /** Returns the function that ends the reader, or undefined if there are too many readers. Only the first call of it counts. */
  enter(): (() => void) | undefined {
    if (this.#count >= MOST_READERS) return undefined;
    this.#count++;
    let hasLeft = false;
    return () => {
      if (!hasLeft) this.#count--;
      hasLeft = true;
    };
  }
}
