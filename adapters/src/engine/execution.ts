import { ports } from "@portico/core";
import { checkDuration } from "../clock/duration.ts";
import type { Note, NoteKind, OpenWork } from "./journal.ts";
import type { Seat } from "./kind-line.ts";
import { SignalBox } from "./signal-box.ts";
import type { WakeUps } from "./wake-ups.ts";
import { checkName, describeThrown, fromJsonText, reviveThrown, toJsonText } from "./work-text.ts";

export interface ExecutionOptions {
  readonly clock: ports.Clock;
  readonly wakeUps: WakeUps;
  readonly seat: Seat;
  /** Aborts, and may have, when the work is stopped for whatever reason. */
  readonly signal: AbortSignal;
  /** What the work remembers from earlier. */
  readonly notes: readonly Note[];
  note(note: Note): Promise<void>;
  /** As `note`, again and again while the store is out of reach: what was done is not to be forgotten. */
  insist(note: Note): Promise<void>;
}

/** One execution of a work: the context that its function gets, and what the engine tells it. */
export class Execution implements ports.WorkContext {
  readonly id: string;
  readonly attempt: number;
  readonly signal: AbortSignal;
  readonly #options: ExecutionOptions;
  readonly #notes = new Map<string, Note>();
  readonly #signals = new SignalBox();
  /** How often each name was reached: each but a wait's may be once. */
  readonly #reached = new Map<string, number>();
  /** To be undone when the function is over, though something of it still waits. */
  readonly #pending = new Set<() => void>();
  #steps = 0;
  #waits = 0;
  #over = false;

  constructor(work: OpenWork, options: ExecutionOptions) {
    this.id = work.id;
    this.attempt = work.attempt;
    this.signal = options.signal;
    this.#options = options;
    for (const note of options.notes) {
      if (note.kind === "signal") this.#signals.put(note);
      else this.#notes.set(keyOf(note.kind, note.name, note.number), note);
    }
  }

  /** The work's input as JSON. */
  get input(): string {
    return this.#notes.get(keyOf("input", "", 0))?.value ?? "{}";
  }

  /** A signal was kept in the journal. */
  tell(note: Note): void {
    this.#signals.put(note);
  }

  /** The function has answered or thrown: what it left behind changes nothing any more. */
  finish(): void {
    this.#over = true;
    for (const undo of this.#pending) undo();
    this.#pending.clear();
  }

  step<T>(name: string, run: (signal: AbortSignal) => Promise<T>, options: { readonly repeatable?: boolean } = {}): Promise<T> {
    return handled(this.#step(name, run, options.repeatable ?? false));
  }

  sleep(name: string, ms: number): Promise<void> {
    return handled(this.#sleep(name, ms));
  }

  waitFor<T>(name: string, options: { readonly timeoutMs?: number } = {}): Promise<T | undefined> {
    return handled(this.#waitFor(name, options.timeoutMs)) as Promise<T | undefined>;
  }

  async #step<T>(name: string, run: (signal: AbortSignal) => Promise<T>, repeatable: boolean): Promise<T> {
    const note = this.#reachOnce("step", name);
    if (note?.state === "done") return fromJsonText(note.value) as T;
    if (note?.state === "threw") throw reviveThrown(note.value);
    this.signal.throwIfAborted();
    if (note && !repeatable) throw new ports.StepInterrupted(`Step ${name} had begun when its process ended`);
    this.#steps++;
    try {
      if (!this.#options.seat.taken) await this.#options.seat.enter(this.signal);
      // Durable before it begins, so that nobody begins it again. What may be repeated needs no such mark.
      if (!repeatable) await this.#options.note(noteOf("step", name, 0, "begun"));
      this.signal.throwIfAborted();
      const text = await this.#run(name, run);
      return fromJsonText(text) as T;
    } finally {
      this.#steps--;
      this.#leaveIdleSeat();
    }
  }

  /** Run a step and remember what became of it. */
  async #run(name: string, run: (signal: AbortSignal) => Promise<unknown>): Promise<string | undefined> {
    let text: string | undefined;
    try {
      text = toJsonText(`What step ${name} answered`, await run(this.signal));
    } catch (thrown) {
      // Stopped half-way, it has not finished: after this it counts as interrupted.
      if (!this.signal.aborted) await this.#remember(noteOf("step", name, 0, "threw", JSON.stringify(describeThrown(thrown))));
      throw thrown;
    }
    await this.#remember(noteOf("step", name, 0, "done", text));
    return text;
  }

  async #sleep(name: string, ms: number): Promise<void> {
    const duration = checkDuration(ms);
    const note = this.#reachOnce("sleep", name);
    this.signal.throwIfAborted();
    const until = note ? Number(note.value) : this.#options.clock.now() + duration;
    if (!note) await this.#options.note(noteOf("sleep", name, 0, "begun", String(until)));
    await this.#waitUntil(until, () => () => {});
  }

  async #waitFor(name: string, timeoutMs: number | undefined): Promise<unknown> {
    const timeout = timeoutMs === undefined ? undefined : checkDuration(timeoutMs);
    const number = this.#reach("wait", name);
    const note = this.#notes.get(keyOf("wait", name, number));
    if (note?.state === "done") return undefined;
    const early = this.#signals.take(name);
    if (early) return fromJsonText(early.value);
    this.signal.throwIfAborted();
    const until = note ? Number(note.value) : this.#options.clock.now() + (timeout ?? Number.POSITIVE_INFINITY);
    if (!note && timeout !== undefined) await this.#options.note(noteOf("wait", name, number, "begun", String(until)));
    // It may have come while the limit was written down.
    const signalled =
      this.#signals.take(name) ??
      (await this.#waitUntil(until, (wake) => this.#signals.wait(name, () => wake(this.#signals.take(name)))));
    if (signalled) return fromJsonText(signalled.value);
    await this.#remember(noteOf("wait", name, number, "done"));
    return undefined;
  }

  /**
   * Wait until a time, or until what `listen` listens to calls back, and answer with what; meanwhile the seat is free. Rejects with the
   * signal's reason when that aborts.
   */
  async #waitUntil(until: number, listen: (wake: (note?: Note) => void) => () => void): Promise<Note | undefined> {
    const { clock, wakeUps, seat } = this.#options;
    this.signal.throwIfAborted();
    if (until <= clock.now()) return undefined;
    this.#waits++;
    this.#leaveIdleSeat();
    let note: Note | undefined;
    try {
      note = await new Promise<Note | undefined>((resolve, reject) => {
        const undo: (() => void)[] = [];
        const stop = (): void => {
          for (const step of undo) step();
          this.#pending.delete(stop);
        };
        const wake = (note?: Note): void => {
          stop();
          resolve(note);
        };
        const abort = (): void => {
          stop();
          reject(this.signal.reason);
        };
        this.#pending.add(stop);
        this.signal.addEventListener("abort", abort, { once: true });
        undo.push(() => this.signal.removeEventListener("abort", abort), listen(wake));
        if (Number.isFinite(until)) undo.push(wakeUps.add(until, wake));
      });
    } finally {
      this.#waits--;
    }
    if (!seat.taken) await seat.enter(this.signal);
    this.signal.throwIfAborted();
    return note;
  }

  /** A work of several branches gives its seat up only when each of them waits, as far as one can see. */
  #leaveIdleSeat(): void {
    if (this.#steps === 0 && this.#waits > 0) this.#options.seat.leave();
  }

  async #remember(note: Note): Promise<void> {
    // After its end a work remembers nothing.
    if (!this.#over) await this.#options.insist(note);
  }

  #reachOnce(kind: NoteKind, name: string): Note | undefined {
    if (this.#reach(kind, name) > 0) throw new TypeError(`The name ${name} of a ${kind} is used twice by one work`);
    return this.#notes.get(keyOf(kind, name, 0));
  }

  /** How often this place was reached before in this execution. */
  #reach(kind: NoteKind, name: string): number {
    checkName(`The name of a ${kind}`, name);
    if (this.#over) throw new TypeError(`A ${kind} was reached after its work had ended`);
    const key = keyOf(kind, name, 0);
    const before = this.#reached.get(key) ?? 0;
    this.#reached.set(key, before + 1);
    return before;
  }
}

function keyOf(kind: NoteKind, name: string, number: number): string {
  return `${kind} ${number} ${name}`;
}

function noteOf(kind: NoteKind, name: string, number: number, state: Note["state"], value?: string): Note {
  return { kind, name, number, state, value };
}

/** Nobody has to wait for it: a branch that lost a race must not end the process when its work is cancelled. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
