import { definePort, type Port } from "../port.ts";
import type { Write } from "./records.ts";

/**
 * Durable execution of accepted work. Queries, webhook events and workflow runs are accepted before they are done; what was accepted
 * survives a kill at any instant (open points 9). Ids, keys and names are 1-512 well-formed characters without U+0000.
 *
 * One process at a time owns the work. The newest process of an owner takes it over at once, another owner's when its lease has run
 * out; whoever lost it is fenced for good. Every method that writes throws EngineFenced where another process owns the work, and
 * EngineUnavailable, also before `ready` and after closing.
 */
export interface Engine {
  /** Say what a kind of work does. Once per kind, before `ready`; TypeError otherwise. Accepted work of no defined kind is kept. */
  define<I extends object, O>(kind: string, work: (context: WorkContext, input: I) => Promise<O>, options: WorkOptions<I>): void;
  /**
   * Runs once, when this process has taken the work over and begins with it: before `ready` resolves, or later where it stood by. For what
   * its owner alone may do, such as settling what an earlier process left between two commits. Before `ready`; TypeError otherwise. What it
   * throws is logged.
   */
  onTaken(run: () => void): void;
  /**
   * Take up what an earlier process left, and begin to work. Called when every kind is defined, by whoever defined one, with
   * `scope.onReady`; twice is once. Resolves when every `closed` was told; or at once where another owner has the work, and then this
   * process stands by until that one's lease has run out.
   */
  ready(): Promise<void>;
  /**
   * Accept work: durable when this resolves, together with `records` (one commit for all, where the engine and the records share a store;
   * otherwise the records first). The same id again is the same work, whatever its input and kind: `{ duplicate: true }`, and its
   * records are not written. Ended work is remembered for a day or as the adapter's options say; after that its id is a new one.
   * Throws RecordConflict, and then nothing was accepted; TypeError for a kind that is not defined, an input that is no JSON object, and
   * records that cannot be stored.
   */
  start(kind: string, id: string, input: object, options?: StartOptions): Promise<{ readonly duplicate: boolean }>;
  /**
   * Told to the work that waits for `name`, or kept until it does; each signal to one wait, in order. Durable when it resolves. Of unknown
   * or ended work: false. The payload is JSON; undefined is told as null, for a wait that is over without a signal answers undefined.
   */
  signal(id: string, name: string, payload: unknown): Promise<boolean>;
  /**
   * The work's signal aborts with WorkCancelled; work that had not begun never does. Durable when it resolves: the work then ends as
   * `cancelled`, whatever it answers or throws. False when it had ended or never was.
   */
  cancel(id: string, reason: string): Promise<boolean>;
  status(id: string): Promise<WorkStatus | undefined>;
  /**
   * Used to stop gracefully. No work is begun from now on, though it is still accepted. Resolves when nothing executes (work that sleeps
   * or waits for a signal does not), or the time is over and what still executes was stopped: its signal aborts with EngineStopped.
   */
  drain(graceMs: number): Promise<void>;
}

export interface WorkOptions<I extends object> {
  /**
   * Work that was executing when its process died or was stopped: `resume` runs the function again, finished steps answering what they
   * answered; `close` ends it as `interrupted`, after `closed` was told. A `closed` that fails is told again at the next start; until
   * one resolves, it may be told more than once.
   *
   * Work of a `resume` kind that does nothing but wait for a while is parked, too (WorkParked), and its function is run again when what it
   * waits for is there. So it does in steps whatever has an effect, takes time or may be different another time, and asks for the same
   * steps, sleeps and waits in the same order, given the same answers. It lets go of what it holds and ends when its signal aborts.
   */
  readonly onInterrupted: "resume" | "close";
  readonly closed?: (id: string, input: I) => Promise<void>;
  /**
   * Executing at once: of one key (default 1) and of the whole kind (default 64). Keys take turns; first in, first out within one. Work
   * that sleeps or waits for a signal holds its key, parked or not, and counts not as one of its kind.
   */
  readonly concurrencyPerKey?: number;
  readonly concurrency?: number;
}

export interface StartOptions {
  /** Work of one kind and key is executed in the order of its acceptance. Default: the work's own id. */
  readonly key?: string;
  /** Written in the same commit as the acceptance. */
  readonly records?: readonly Write[];
}

export interface WorkContext {
  readonly id: string;
  /** 1 for the first execution, one more for each that resumes it after an interruption; having been parked is none. */
  readonly attempt: number;
  /**
   * Aborts when the work is cancelled (WorkCancelled), when it only waits and is parked (WorkParked), when its lease is lost (EngineFenced)
   * or when the process stops (EngineStopped).
   */
  readonly signal: AbortSignal;
  /**
   * Run once and remember the result, which is answered as JSON keeps it; what the step throws is remembered too, by name and message.
   * After a crash a finished step answers what it answered; one that had begun and not finished runs again where it is `repeatable`,
   * and otherwise throws StepInterrupted, for the work to decide. After `signal` aborted, no step begins: it throws the reason.
   * A name is used once; TypeError otherwise, and for a result that is no JSON.
   */
  step<T>(name: string, run: (signal: AbortSignal) => Promise<T>, options?: { readonly repeatable?: boolean }): Promise<T>;
  /** Durable: counted from the first time it was reached. Costs a record, and no memory, once the work is parked. A name is used once. */
  sleep(name: string, ms: number): Promise<void>;
  /**
   * Resolves with the signal's payload, or undefined after `timeoutMs`, counted from the first time it was reached. A signal that came
   * before anybody waited is kept. A name may be waited for again: each wait gets its own signal.
   */
  waitFor<T>(name: string, options?: { readonly timeoutMs?: number }): Promise<T | undefined>;
}

export interface WorkStatus {
  readonly kind: string;
  /** Parked work is `waiting`, as is work that has not begun. */
  readonly state: "waiting" | "executing" | "completed" | "failed" | "cancelled" | "interrupted";
  readonly attempt: number;
  /** Milliseconds since 1970. */
  readonly acceptedAt: number;
  readonly endedAt?: number | undefined;
  /** What the work returned, of completed work. */
  readonly output?: unknown;
  /** Name and message of what it threw, of failed work; the reason, of cancelled work. */
  readonly error?: string | undefined;
}

/** The reason with which the signal of cancelled work aborts. */
export class WorkCancelled extends Error {
  override readonly name = "WorkCancelled";
}

/** The reason with which signals abort when the process stops: the work is resumed or closed, as its kind says. */
export class EngineStopped extends Error {
  override readonly name = "EngineStopped";
}

/**
 * The reason with which the signal of work that only waits aborts, when its memory is given back. It is executed again, finished steps
 * answering what they answered, when what it waits for is there: a signal under a name that it waits for, the end of a sleep or of a wait's
 * time, or its cancellation. Its waits reject with this; what its function then throws or answers does not count, and is no failure. Only
 * work of a `resume` kind is parked, and only when it has done nothing else for a while, which the adapter's options say. A function that
 * does not end when it is told so keeps its memory, and is not run a second time beside itself.
 */
export class WorkParked extends Error {
  override readonly name = "WorkParked";
}

/** Thrown by a step that had begun when its process died, and may not be repeated. */
export class StepInterrupted extends Error {
  override readonly name = "StepInterrupted";
}

/** Another process owns the work: this one lost its lease, and nothing that it writes counts. */
export class EngineFenced extends Error {
  override readonly name = "EngineFenced";
}

/**
 * Thrown when the engine's store cannot be reached, is full, or is broken, and by an engine that is not ready yet or closed. Whether a
 * write took effect is then unknown.
 */
export class EngineUnavailable extends Error {
  override readonly name = "EngineUnavailable";
}

export const engine: Port<Engine> = definePort<Engine>("engine");
