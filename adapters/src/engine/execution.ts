import { checkDuration, ports } from "@portico/core";
import { Branch, type BranchedExecution } from "./branch.ts";
import { IdleWatch } from "./idle-watch.ts";
import type { Note, NoteKind, OpenWork, Rest } from "./journal.ts";
import { type Answerable, type Asking, ReplayOrder } from "./replay-order.ts";
import type { Seat } from "./seats.ts";
import { SignalBox, type SignalWait } from "./signal-box.ts";
import type { WakeUps } from "./wake-ups.ts";
import { checkName, describeThrown, fromJsonText, reviveThrown, toJsonText } from "./work-text.ts";

/** The dependencies of one execution of a work. */
export interface ExecutionOptions {
  readonly clock: ports.Clock;
  readonly wakeUps: WakeUps;
  readonly seat: Seat;
  /** Aborts when the work is stopped for any reason. It may be aborted already. */
  readonly signal: AbortSignal;
  /** The stored results of the work. */
  readonly notes: readonly Note[];
  /** Whether the function may run again. Otherwise no result of a step is needed, and none is stored. */
  readonly mayResume: boolean;
  /** Absent if the function must not run twice, or work is never parked. */
  readonly parking: Parking | undefined;
  /** The condition that this execution has the work. `isLost` says what is known without asking the journal. */
  held(isLost: () => boolean): ports.Write;
  /** The same condition. If the work has not begun in the journal, the batch also begins it. */
  begun(isLost: () => boolean): ports.Write;
  /** The same condition. If the journal shares a store with the records, the batch also ends the work as completed. */
  ended(isLost: () => boolean): ports.Write;
  /**
   * Record that a step, a sleep, or a wait with a time limit begins. Waits while the journal is unavailable. Throws the signal's
   * reason when it aborts.
   */
  announce(note: Note): Promise<void>;
  /**
   * Record a finished step, or a wait whose time limit has passed. Waits while the journal is unavailable, also after the signal
   * has aborted, so that the result is not lost.
   */
  insist(note: Note): Promise<void>;
}

/** When and how an execution that only waits is parked. */
export interface Parking {
  /** How long it must have only waited. */
  readonly afterMs: number;
  /** Aborts its signal. */
  park(): void;
}

/** A step, sleep or wait that the function has requested. */
interface Asked extends Answerable {
  readonly name: string;
  readonly number: number;
  /** Its stored result, or the mark that it had begun. */
  readonly note: Note | undefined;
  /** The request that answers it. Read only if the answers must keep an order. */
  signal?: number | undefined;
  until?: number | undefined;
}

/** A wait or a sleep of one of its branches. */
interface Wait {
  readonly key: string;
  readonly until: number;
  readonly signal: string | undefined;
}

/** One execution of a work: the context of its function, and the events from the engine. */
export class Execution implements BranchedExecution {
  readonly id: string;
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly #options: ExecutionOptions;
  readonly #notes = new Map<string, Note>();
  readonly #signals = new SignalBox();
  /** How often each name was used. Only waits may use a name more than once. */
  readonly #reached = new Map<string, number>();
  /** Cleanups for the end of the function, if a part of it still waits. */
  readonly #pending = new Set<() => void>();
  readonly #waits = new Set<Wait>();
  readonly #idle: IdleWatch | undefined;
  /** Set for work that was parked with several branches. */
  readonly #replay: ReplayOrder | undefined;
  /** The keys of answered requests, in order. */
  readonly #answered: string[] = [];
  /** Number of unanswered requests of the function, and whether there was ever more than one. */
  #asked = 0;
  #branched = false;
  #steps = 0;
  /** Number of branches that do something outside of their requests. */
  #busy = 0;
  #over = false;
  #hasBegun = false;
  #hasEnded = false;
  #rest: Rest | undefined;

  constructor(work: OpenWork, options: ExecutionOptions) {
    this.id = work.id;
    this.attempt = work.attempt;
    this.signal = options.signal;
    this.#options = options;
    for (const note of options.notes) {
      if (note.kind === "signal") this.#signals.put(note);
      else this.#notes.set(keyOf(note.kind, note.name, note.number), note);
    }
    const order = this.#notes.get(ORDER);
    if (order) this.#replay = new ReplayOrder(fromJsonText(order.value) as Asking);
    const { clock, wakeUps, parking } = options;
    if (parking) this.#idle = new IdleWatch({ clock, wakeUps, afterMs: parking.afterMs, onIdle: () => this.#park(parking) });
  }

  get held(): ports.Write {
    return this.#options.held(this.#isLost);
  }

  /** Whether a batch of records was the beginning of the work. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** Whether a batch of records was the end of the work. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The work's input as JSON. */
  get input(): string {
    return this.#notes.get(keyOf("input", "", 0))?.value ?? "{}";
  }

  /** The events that it waited for when it was parked. Undefined if it was not parked. */
  get rest(): Rest | undefined {
    return this.#rest;
  }

  /** The journal has stored a signal. */
  tell(note: Note): void {
    this.#signals.put(note);
  }

  /** The function has returned or thrown. Its remaining branches have no effect any more. */
  finish(): void {
    this.#over = true;
    this.#idle?.stop();
    for (const undo of this.#pending) undo();
    this.#pending.clear();
  }

  // Own properties, because functions often destructure their context.
  readonly beginWith = async <T>(run: (begun: ports.Write) => Promise<T>): Promise<T> => {
    const result = await run(this.#options.begun(this.#isLost));
    this.#hasBegun = true;
    return result;
  };

  readonly endWith = async <T>(run: (ended: ports.Write) => Promise<T>): Promise<T> => {
    const result = await run(this.#options.ended(this.#isLost));
    this.#hasEnded = true;
    return result;
  };

  readonly step = <T>(
    name: string,
    run: (signal: AbortSignal) => Promise<T>,
    options: { readonly repeatable?: boolean } = {},
  ): Promise<T> => handled(this.#ask("step", name, (asked) => this.#step(asked, run, options.repeatable ?? false)));

  readonly sleep = (name: string, ms: number): Promise<void> =>
    handled(this.#ask("sleep", name, (asked) => this.#sleep(asked, ms)));

  readonly waitFor = <T>(name: string, options: { readonly timeoutMs?: number } = {}): Promise<T | undefined> =>
    handled(this.#ask("wait", name, (asked) => this.#waitFor(asked, options.timeoutMs))) as Promise<T | undefined>;

  readonly earlier = (): readonly ports.EarlierResult[] =>
    this.#options.notes.flatMap(({ kind, name, state, value }): ports.EarlierResult[] => {
      if (kind === "step" && state === "begun") return [{ kind: "begun", name, value: undefined }];
      if (kind === "signal" || (kind === "step" && state === "done")) return [{ kind, name, value: fromJsonText(value) }];
      return [];
    });

  readonly branch = <T>(run: (context: ports.WorkContext) => Promise<T>): Promise<T> => handled(this.#branch(run));

  countBusy(change: 1 | -1): void {
    this.#busy += change;
    if (this.#busy > 0) this.#idle?.busy();
    else this.#noticeIdle();
  }

  async #branch<T>(run: (context: ports.WorkContext) => Promise<T>): Promise<T> {
    const branch = new Branch(this);
    try {
      return await run(branch);
    } finally {
      branch.end();
    }
  }

  readonly #isLost = (): boolean => this.#over || this.signal.reason instanceof ports.EngineFenced;

  /** Answer a request of the function, and track whether the work only waits. */
  async #ask<T>(kind: NoteKind, name: string, answer: (asked: Asked) => Promise<T>): Promise<T> {
    const number = this.#reach(kind, name);
    const key = keyOf(kind, name, number);
    const asked: Asked = { key, name, number, note: this.#notes.get(key) };
    if (++this.#asked > 1) this.#branched = true;
    this.#idle?.busy();
    try {
      return await answer(asked);
    } finally {
      if (this.#replay?.has(key)) await this.#replay.turn(asked);
      this.#asked--;
      if (this.#idle) this.#answered.push(key);
      this.#noticeIdle();
    }
  }

  async #step<T>(asked: Asked, run: (signal: AbortSignal) => Promise<T>, repeatable: boolean): Promise<T> {
    const { name, note } = asked;
    if (note?.state === "done") return fromJsonText(note.value) as T;
    if (note?.state === "threw") throw reviveThrown(note.value);
    this.signal.throwIfAborted();
    if (note && !repeatable) throw new ports.StepInterrupted(`Step ${name} had begun when its process ended`);
    this.#steps++;
    try {
      if (!this.#options.seat.taken) await this.#options.seat.enter(this.signal);
      // Durable before it begins, so that it never begins twice. A repeatable step needs no such mark.
      if (!repeatable) await this.#options.announce(noteOf("step", name, 0, "begun"));
      this.signal.throwIfAborted();
      const text = await this.#run(name, run);
      return fromJsonText(text) as T;
    } finally {
      this.#steps--;
      this.#leaveIdleSeat();
    }
  }

  /** Run a step and store its result. */
  async #run(name: string, run: (signal: AbortSignal) => Promise<unknown>): Promise<string | undefined> {
    let text: string | undefined;
    try {
      text = toJsonText(`What step ${name} answered`, await run(this.signal));
    } catch (thrown) {
      // A step that was stopped has not finished: it counts as interrupted.
      if (!this.signal.aborted) await this.#remember(noteOf("step", name, 0, "threw", JSON.stringify(describeThrown(thrown))));
      throw thrown;
    }
    await this.#remember(noteOf("step", name, 0, "done", text));
    return text;
  }

  async #sleep(asked: Asked, ms: number): Promise<void> {
    const { name, note } = asked;
    const duration = checkDuration(ms);
    this.signal.throwIfAborted();
    const until = note ? Number(note.value) : this.#options.clock.now() + duration;
    if (!note) await this.#options.announce(noteOf("sleep", name, 0, "begun", String(until)));
    await this.#waitUntil(asked.key, until);
    asked.until = until;
  }

  async #waitFor(asked: Asked, timeoutMs: number | undefined): Promise<unknown> {
    const { name, number, note } = asked;
    const timeout = timeoutMs === undefined ? undefined : checkDuration(timeoutMs);
    if (note?.state === "done") {
      asked.until = Number(note.value ?? 0);
      return undefined;
    }
    // In the queue from here on, so that no other wait overtakes it while the time limit is being stored.
    const wait = this.#signals.wait(name);
    try {
      const until = note ? Number(note.value) : this.#options.clock.now() + (timeout ?? Number.POSITIVE_INFINITY);
      if (!wait.note) {
        this.signal.throwIfAborted();
        if (!note && timeout !== undefined) await this.#options.announce(noteOf("wait", name, number, "begun", String(until)));
        if (!wait.note) await this.#waitUntil(asked.key, until, name, wait);
      }
      if (wait.note) {
        asked.signal = wait.note.number;
        return fromJsonText(wait.note.value);
      }
      asked.until = until;
      await this.#remember(noteOf("wait", name, number, "done", String(until)));
      return undefined;
    } finally {
      wait.leave();
    }
  }

  /**
   * Wait until a time, or for a signal. Meanwhile, the seat is free, unless a step runs. Rejects with the reason of the work's own
   * signal when it aborts.
   */
  async #waitUntil(key: string, until: number, signal?: string, told?: SignalWait): Promise<void> {
    const { clock, wakeUps, seat } = this.#options;
    this.signal.throwIfAborted();
    if (until <= clock.now()) return;
    const wait: Wait = { key, until, signal };
    this.#waits.add(wait);
    this.#leaveIdleSeat();
    this.#noticeIdle(until);
    await new Promise<void>((resolve, reject) => {
      const undo: (() => void)[] = [];
      const stop = (): void => {
        for (const step of undo) step();
        this.#pending.delete(stop);
        this.#waits.delete(wait);
        this.#idle?.busy();
      };
      const wake = (): void => {
        stop();
        resolve();
      };
      const abort = (): void => {
        stop();
        reject(this.signal.reason);
      };
      this.#pending.add(stop);
      this.signal.addEventListener("abort", abort, { once: true });
      undo.push(() => this.signal.removeEventListener("abort", abort));
      if (told) {
        told.told = wake;
        undo.push(told.leave);
      }
      if (Number.isFinite(until)) undo.push(wakeUps.add(until, wake));
    });
    if (!seat.taken) await seat.enter(this.signal);
    this.signal.throwIfAborted();
  }

  /** Work with several branches releases its seat when one of them waits and none runs a step. */
  #leaveIdleSeat(): void {
    if (this.#steps === 0 && this.#waits.size > 0) this.#options.seat.leave();
  }

  /** If all requests wait, and no branch is busy, the work is idle until `until` or until a signal arrives. */
  #noticeIdle(until = Number.POSITIVE_INFINITY): void {
    const isIdle = this.#waits.size > 0 && this.#waits.size === this.#asked && this.#busy === 0;
    if (isIdle && !this.#over) this.#idle?.idle(until);
  }

  /** Records the events that it waits for, before its waits reject, and ends the execution, which frees its memory. */
  #park(parking: Parking): void {
    if (this.signal.aborted || this.#over) return;
    const waits = [...this.#waits];
    const until = waits.reduce((first, wait) => Math.min(first, wait.until), Number.POSITIVE_INFINITY);
    const asking: Asking = { answered: this.#answered, waiting: waits.map(({ key }) => key) };
    this.#rest = {
      until: Number.isFinite(until) ? until : undefined,
      awaited: [...new Set(waits.flatMap(({ signal }) => signal ?? []))],
      known: this.#signals.known,
      order: this.#branched ? noteOf("order", "", 0, "done", JSON.stringify(asking)) : undefined,
    };
    parking.park();
  }

  async #remember(note: Note): Promise<void> {
    // After its end, a work stores no results.
    if (!this.#over && (this.#options.mayResume || note.kind !== "step")) await this.#options.insist(note);
  }

  /** How often this name was used before in this execution. Throws TypeError for a second use where only one is allowed. */
  #reach(kind: NoteKind, name: string): number {
    checkName(`The name of a ${kind}`, name);
    if (this.#over) throw new TypeError(`A ${kind} was reached after its work had ended`);
    const key = keyOf(kind, name, 0);
    const before = this.#reached.get(key) ?? 0;
    this.#reached.set(key, before + 1);
    if (before > 0 && kind !== "wait") throw new TypeError(`The name ${name} of a ${kind} is used twice by one work`);
    return before;
  }
}

const ORDER = keyOf("order", "", 0);

function keyOf(kind: NoteKind, name: string, number: number): string {
  return `${kind} ${number} ${name}`;
}

function noteOf(kind: NoteKind, name: string, number: number, state: Note["state"], value?: string): Note {
  return { kind, name, number, state, value };
}

/** Prevents an unhandled rejection: a branch that lost a race must not end the process when its work is cancelled. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
