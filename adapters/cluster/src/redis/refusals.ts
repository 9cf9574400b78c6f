import type { ports } from "@portico/core";
import type { RedisUse } from "./server.ts";

/** A flood of foreign messages writes one line in this time. */
const LINE_EVERY_MS = 60_000;

/** Counts what a process found in Redis and refused, and says so in the log. */
export class Refusals {
  readonly #log: ports.Log;
  readonly #counts: Record<RedisUse, number> = { bus: 0, engine: 0, presence: 0 };
  #loggedAt = Number.NEGATIVE_INFINITY;

  constructor(log: ports.Log) {
    this.#log = log;
  }

  get gauge(): ports.Gauge {
    return {
      name: "portico_redis_refused_texts",
      help: "Messages, sockets and offers in Redis that this process has refused since its start: this instance did not write them",
      read: () => Object.entries(this.#counts).map(([use, value]) => ({ labels: { use }, value })),
    };
  }

  count(use: RedisUse): void {
    this.#counts[use]++;
    const now = performance.now();
    if (now - this.#loggedAt < LINE_EVERY_MS) return;
    this.#loggedAt = now;
    this.#log.warn("Refused a text in Redis that this instance did not write", { use });
  }
}
