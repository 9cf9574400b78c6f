import { setImmediate } from "node:timers/promises";
import type { ports, Scope } from "@portico/core";
import { type Followers, FOLLOWERS_TOPIC, LINES_TOPIC, type ProcessName, type SentLines } from "./bus-topics.ts";
import type { LineSource } from "./config.ts";
import { createLineFilter } from "./line-filter.ts";
import { CHARACTERS_AT_ONCE, FOLLOWED_MS, GATHER_MS, LINES_AT_ONCE, LINES_PER_MESSAGE } from "./limits.ts";

interface SenderGiven {
  readonly bus: ports.Bus;
  readonly clock: ports.Clock;
  readonly lines: LineSource;
  readonly process: ProcessName;
}

interface Followed {
  readonly filters: readonly ReturnType<typeof createLineFilter>[];
  readonly until: number;
}

/**
 * Sends the lines of this process to others while one of them follows, and nothing otherwise. It never slows the log: lines beyond a bound are
 * left out, and counted.
 */
export class LineSender {
  readonly #given: SenderGiven;
  /** By process. */
  readonly #followers = new Map<string, Followed>();
  readonly #closing = new AbortController();
  #isSending = false;
  #told = 0;

  constructor(given: SenderGiven) {
    this.#given = given;
  }

  /** Listen for processes that follow, until the scope closes. */
  open(scope: Scope): void {
    const subscription = this.#given.bus.subscribe(FOLLOWERS_TOPIC, {
      told: (message) => this.#hear(message as Followers),
      missed() {},
    });
    scope.onClose(() => {
      subscription.close();
      this.#closing.abort();
    });
  }

  #hear({ process, wanted }: Followers): void {
    if (process === this.#given.process.id) return;
    if (wanted.length === 0) {
      this.#followers.delete(process);
      return;
    }
    const until = this.#given.clock.now() + FOLLOWED_MS;
    this.#followers.set(process, { filters: wanted.map(createLineFilter), until });
    if (this.#isSending) return;
    this.#isSending = true;
    void this.#send()
      // Only the end of the app ends its waits early.
      .catch(() => {})
      .finally(() => (this.#isSending = false));
  }

  /** Sends until no process follows. */
  async #send(): Promise<void> {
    const { bus, clock, lines, process } = this.#given;
    const { signal } = this.#closing;
    let taken = lines.newest;
    for (;;) {
      await lines.after(taken, signal);
      // Lines of a moment share a message.
      await clock.sleep(GATHER_MS, signal);
      const filters = this.#filters();
      if (filters.length === 0) return;
      const gathered = await gather(lines, taken, filters);
      taken = gathered.taken;
      if (gathered.lines.length === 0 && gathered.missed === 0) continue;
      const { lines: sent, missed } = gathered;
      bus.publish(LINES_TOPIC, { process, before: this.#told, lines: sent, missed } satisfies SentLines, { toOthers: true });
      this.#told += sent.length + missed;
    }
  }

  /** Those of processes that still follow. */
  #filters(): Followed["filters"] {
    const now = this.#given.clock.now();
    for (const [process, { until }] of this.#followers) if (until <= now) this.#followers.delete(process);
    return [...this.#followers.values()].flatMap(({ filters }) => filters);
  }
}

/** The wanted lines after a position, up to the bounds of a message. `missed` counts the lines that were dropped or are beyond the bounds. */
async function gather(source: LineSource, after: number, filters: Followed["filters"]) {
  const end = source.newest;
  const lines: string[] = [];
  let characters = 0;
  let taken = Math.max(after, source.oldest - 1);
  let missed = taken - after;
  while (taken < end && lines.length < LINES_PER_MESSAGE && characters < CHARACTERS_AT_ONCE) {
    if (taken % LINES_AT_ONCE === 0) await setImmediate();
    const text = source.at(++taken);
    if (text === undefined) missed++;
    else if (filters.some((filter) => filter(text) !== undefined)) {
      lines.push(text);
      characters += text.length;
    }
  }
  // The oldest are sent, so that the count is of the lines after them.
  missed += end - taken;
  return { lines, missed, taken: end };
}
