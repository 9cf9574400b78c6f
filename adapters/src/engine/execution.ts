import { ports } from "@portico/core";
import { checkDuration } from "../clock/duration.ts";
import { IdleWatch } from "./idle-watch.ts";
import type { Note, NoteKind, OpenWork, Rest } from "./journal.ts";
import type { Seat } from "./kind-line.ts";
import { type Answerable, type Asking, ReplayOrder } from "./replay-order.ts";
import { SignalBox, type SignalWait } from "./signal-box.ts";
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
  /** Absent where the function may not be run twice. */
  readonly parking: Parking | undefined;
  note(note: Note): Promise<void>;
  /** As `note`, again and again while the store is out of reach: what was done is not to be forgotten. */
  insist(note: Note): Promise<void>;
}

export interface Parking {
  /** For how long it has to do nothing but wait. */
  readonly afterMs: number;
  /** Make its signal abort. */
  park(): void;
}

/** Something that the function asked for. */
interface Asked extends Answerable {
  readonly name: string;
  readonly number: number;
  /** What is remembered of it. */
  readonly note: Note | undefined;
  /** Only where the answers have to come in an order. */
  signal?: number | undefined;
  until?: number | undefined;
}

/** What one of its branches waits for. */
interface Wait {
  readonly key: string;
  readonly until: number;
  readonly signal: string | undefined;
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
  readonly #waits = new Set<Wait>();
  readonly #idle: IdleWatch | undefined;
  /** Of work that was parked with several branches. */
  readonly #replay: ReplayOrder | undefined;
  /** The keys of what was answered, in order. */
  readonly #answered: string[] = [];
  /** How much the function has asked for and was not answered yet, and whether that was ever more than one. */
  #asked = 0;
  #branched = false;
  #steps = 0;
  #over = false;
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

  /** The work's input as JSON. */
  get input(): string {
    return this.#notes.get(keyOf("input", "", 0))?.value ?? "{}";
  }

  /** What it waited for when it was parked; undefined when it was not. */
  get rest(): Rest | undefined {
    return this.#rest;
  }

  /** A signal was kept in the journal. */
  tell(note: Note): void {
    this.#signals.put(note);
  }

  /** The function has answered or thrown: what it left behind changes nothing any more. */
  finish(): void {
    this.#over = true;
    this.#idle?.stop();
    for (const undo of this.#pending) undo();
    this.#pending.clear();
  }

  step<T>(name: string, run: (signal: AbortSignal) => Promise<T>, options: { readonly repeatable?: boolean } = {}): Promise<T> {
    return handled(this.#ask("step", name, (asked) => this.#step(asked, run, options.repeatable ?? false)));
  }

  sleep(name: string, ms: number): Promise<void> {
    return handled(this.#ask("sleep", name, (asked) => this.#sleep(asked, ms)));
  }

  waitFor<T>(name: string, options: { readonly timeoutMs?: number } = {}): Promise<T | undefined> {
    return handled(this.#ask("wait", name, (asked) => this.#waitFor(asked, options.timeoutMs))) as Promise<T | undefined>;
  }

  /** Answer what the function asks for, and know meanwhile whether it does anything but wait. */
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

  async #sleep(asked: Asked, ms: number): Promise<void> {
    const { name, note } = asked;
    const duration = checkDuration(ms);
    this.signal.throwIfAborted();
    const until = note ? Number(note.value) : this.#options.clock.now() + duration;
    if (!note) await this.#options.note(noteOf("sleep", name, 0, "begun", String(until)));
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
    // In line from here on, so that the limit's being written down does not let another wait pass.
    const wait = this.#signals.wait(name);
    try {
      const until = note ? Number(note.value) : this.#options.clock.now() + (timeout ?? Number.POSITIVE_INFINITY);
      if (!wait.note) {
        this.signal.throwIfAborted();
        if (!note && timeout !== undefined) await this.#options.note(noteOf("wait", name, number, "begun", String(until)));
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

  /** Wait until a time, or until a signal is there; meanwhile the seat is free. Rejects with the signal's reason when that aborts. */
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

  /** A work of several branches gives its seat up only when each of them waits, as far as one can see. */
  #leaveIdleSeat(): void {
    if (this.#steps === 0 && this.#waits.size > 0) this.#options.seat.leave();
  }

  /** Where all that was asked for is waited for, nothing happens before `until`, or before a signal comes. */
  #noticeIdle(until = Number.POSITIVE_INFINITY): void {
    if (this.#waits.size > 0 && this.#waits.size === this.#asked && !this.#over) this.#idle?.idle(until);
  }

  /** Note what it waits for, before its waits reject, and give its memory back. */
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
    // After its end a work remembers nothing.
    if (!this.#over) await this.#options.insist(note);
  }

  /** How often this place was reached before in this execution. Throws TypeError for what may be reached once only. */
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

/** Nobody has to wait for it: a branch that lost a race must not end the process when its work is cancelled. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
