import type { ports } from "@portico/core";
import { type Followers, FOLLOWERS_TOPIC, LINES_TOPIC, type ProcessName, type SentLines } from "./bus-topics.ts";
import type { WantedLines } from "./line-filter.ts";
import { FOLLOW_AGAIN_MS, KNOWN_PROCESSES, QUEUED_CHARACTERS, QUEUED_LINES } from "./limits.ts";

/** A line of another process, or a number of its lines that were lost. */
export type LineElsewhere = { readonly from: string } & ({ readonly text: string } | { readonly missed: number });

/** The lines of other processes for one reader. */
export interface ElsewhereQueue {
  /** The oldest one that waits. */
  take(): LineElsewhere | undefined;
  /** Resolves when one waits. Rejects with the reason of the signal when it aborts. */
  after(signal: AbortSignal): Promise<void>;
  close(): void;
}

interface ElsewhereGiven {
  readonly bus: ports.Bus;
  readonly clock: ports.Clock;
  readonly process: ProcessName;
}

/** Follows the lines of other processes while a reader of this one wants them. */
export class LinesElsewhere {
  readonly #given: ElsewhereGiven;
  readonly #queues = new Map<ReaderQueue, WantedLines>();
  /** How many lines each process has told of. */
  readonly #known = new Map<string, number>();
  #subscription: ports.BusSubscription | undefined;
  #timer: ports.Timer | undefined;

  constructor(given: ElsewhereGiven) {
    this.#given = given;
  }

  /** Follow for a reader, until the queue is closed. */
  open(wanted: WantedLines): ElsewhereQueue {
    const queue = new ReaderQueue(() => this.#leave(queue));
    this.#queues.set(queue, wanted);
    if (!this.#subscription) {
      const say = () => this.#say();
      const subscription = this.#given.bus.subscribe(LINES_TOPIC, {
        told: (message) => this.#hear(message as SentLines),
        missed: say,
      });
      this.#subscription = subscription;
      void subscription.active.then((isActive) => isActive && this.#subscription === subscription && say());
      this.#sayAgain();
    } else this.#say();
    return queue;
  }

  #leave(queue: ReaderQueue): void {
    if (!this.#queues.delete(queue)) return;
    this.#say();
    if (this.#queues.size > 0) return;
    this.#timer?.cancel();
    this.#subscription?.close();
    this.#subscription = undefined;
    this.#known.clear();
  }

  #say(): void {
    const { bus, process } = this.#given;
    bus.publish(FOLLOWERS_TOPIC, { process: process.id, wanted: [...this.#queues.values()] } satisfies Followers, {
      toOthers: true,
    });
  }

  /** A process forgets those that do not say so again: they may have died. */
  #sayAgain(): void {
    this.#timer = this.#given.clock.after(FOLLOW_AGAIN_MS, () => {
      this.#say();
      this.#sayAgain();
    });
  }

  #hear({ process: { id, host, pid }, before, lines, missed }: SentLines): void {
    if (id === this.#given.process.id) return;
    const from = nameOf({ host, pid });
    // A message that the bus lost.
    const lost = Math.max(0, before - (this.#known.get(id) ?? before));
    // Processes that have ended are not known to have.
    if (this.#known.size >= KNOWN_PROCESSES) this.#known.clear();
    this.#known.set(id, before + missed + lines.length);
    for (const queue of this.#queues.keys()) {
      for (const text of lines) queue.add({ from, text });
      if (lost + missed > 0) queue.add({ from, missed: lost + missed });
    }
  }
}

/** How lines name the process that wrote them. */
export function nameOf({ host, pid }: Pick<ProcessName, "host" | "pid">): string {
  return `${host}/${pid}`;
}

/** Bounded: if its reader is slow, the oldest lines are dropped and counted. */
class ReaderQueue implements ElsewhereQueue {
  readonly #waiting: LineElsewhere[] = [];
  /** Dropped lines by process, which come before those that wait. */
  readonly #dropped = new Map<string, number>();
  readonly #left: () => void;
  #characters = 0;
  #wake: (() => void) | undefined;

  constructor(left: () => void) {
    this.#left = left;
  }

  add(line: LineElsewhere): void {
    this.#waiting.push(line);
    if ("text" in line) this.#characters += line.text.length;
    while (this.#waiting.length > QUEUED_LINES || this.#characters > QUEUED_CHARACTERS) {
      const dropped = this.#shift()!;
      const count = "text" in dropped ? 1 : dropped.missed;
      this.#dropped.set(dropped.from, (this.#dropped.get(dropped.from) ?? 0) + count);
    }
    this.#wake?.();
  }

  take(): LineElsewhere | undefined {
    for (const [from, missed] of this.#dropped) {
      this.#dropped.delete(from);
      return { from, missed };
    }
    return this.#shift();
  }

  async after(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#waiting.length > 0 || this.#dropped.size > 0) return;
    await new Promise<void>((resolve, reject) => {
      const leave = () => {
        this.#wake = undefined;
        reject(signal.reason as Error);
      };
      this.#wake = () => {
        this.#wake = undefined;
        signal.removeEventListener("abort", leave);
        resolve();
      };
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  close(): void {
    this.#left();
  }

  #shift(): LineElsewhere | undefined {
    const line = this.#waiting.shift();
    if (line && "text" in line) this.#characters -= line.text.length;
    return line;
  }
}
