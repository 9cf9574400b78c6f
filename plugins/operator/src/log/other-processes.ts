// The lines of the other processes of an instance, over the port `bus`: a process sends its lines to others while a reader follows there, and
// receives the lines of others while one of its own readers wants them.
import { setImmediate } from "node:timers/promises";
import type { ports, Scope } from "@portico/core";
import { createLineFilter, type LineSource, LINES_AT_ONCE, type WantedLines } from "./lines.ts";

/** Bounds of the lines of other processes that wait for one reader. */
const QUEUED_LINES = 1_000;
const QUEUED_CHARACTERS = 512 * 1024;

/** A process sends its lines to others that follow at most this often, and at most this much at once: less than a message of the bus can hold. */
const GATHER_MS = 200;
const LINES_PER_MESSAGE = 500;
const CHARACTERS_AT_ONCE = 128 * 1024;

/** A process that follows says so this often. Others forget it after the longer time. */
const FOLLOW_AGAIN_MS = 5_000;
const FOLLOWED_MS = 15_000;

/** Processes whose lines are counted, to notice those that the bus lost. */
const KNOWN_PROCESSES = 1_000;

/** Which lines the readers of a process want from all processes. Without any, the process follows no longer. */
interface Followers {
  /** Id of the process. */
  readonly process: string;
  /** One for each reader. */
  readonly wanted: readonly WantedLines[];
}

/** Lines that a process sends to those that follow. */
interface SentLines {
  readonly process: ProcessName;
  /** How many lines it sent or left out before this message, since its start. */
  readonly before: number;
  /** Texts of JSON objects, the oldest first. */
  readonly lines: readonly string[];
  /** How many lines it left out before these, because they were too many. */
  readonly missed: number;
}

/** A process of the instance. The id is new after each start. */
export interface ProcessName {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
}

const FOLLOWERS_TOPIC = "log/followers";
const LINES_TOPIC = "log/lines";

/** A line of another process, or a number of its lines that were lost. */
type LineElsewhere = { readonly from: string } & ({ readonly text: string } | { readonly missed: number });

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
        received: (message) => this.#hear(message as SentLines),
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
      received: (message) => this.#hear(message as Followers),
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
