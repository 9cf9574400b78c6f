import { definePort, type Port } from "../grammar/port.ts";
import type { Write } from "./records.ts";

/**
 * Durable execution of accepted work. Queries, webhook events and workflow runs are accepted before they are executed. Accepted
 * work survives a kill at any instant (open points 9). IDs, keys and names are 1-512 well-formed characters without U+0000.
 *
 * Every process that defines a kind takes part in its work. One process at a time executes a work. When that process loses its
 * lease, another process executes the work, and the first process is fenced: its execution aborts with EngineFenced, and its
 * later writes about the work have no effect. `start`, `signal`, `cancel` and `status` work in every process. They throw
 * EngineUnavailable when the engine's store is unreachable, before `ready` and after closing.
 *
 * An engine for a single process has one owner at a time. The newest process of an owner takes all work over at once; a process
 * of another owner stands by until the lease has expired. Methods that write throw EngineFenced in every other process.
 *
 * Executing work does not notice an outage of the engine's store: its steps, sleeps and waits take until the store is back.
 */
export interface Engine {
  /** Identifies this process among those that share the work. It changes with every start. */
  readonly process: string;
  /** Whether other processes may execute work at the same time. False for engines of a single process. */
  readonly isShared: boolean;
  /**
   * Define the function of a kind of work. Call it once per kind, before `ready`; TypeError otherwise. Accepted work of an
   * undefined kind is kept.
   */
  define<I extends object, O>(kind: string, work: (context: WorkContext, input: I) => Promise<O>, options: WorkOptions<I>): void;
  /**
   * Run a task about every `everyMs`, in one process at a time of all that share the work: for example removal of old data, or
   * completion of what a dead process left between two commits. A process that stands by runs no chores. Call `chore` once per
   * name, before `ready`; TypeError otherwise, and RangeError for invalid times. `run` must end when its signal aborts, which
   * happens when the process stops or loses its lease. Errors of `run` are logged, and it runs again at the next time.
   */
  chore(name: string, options: ChoreOptions, run: (signal: AbortSignal) => Promise<void>): void;
  /**
   * Begin to execute, and take over the work of earlier processes. Every plugin or adapter that defined a kind or a chore calls
   * it with `scope.onReady`, so it runs when all are defined. A second call has no effect. In a single-process engine, it resolves
   * when every `closed` was called; if another owner has the work, it resolves at once, and this process stands by until the
   * lease of that owner has expired.
   */
  ready(): Promise<void>;
  /**
   * Accept work. It is durable when this resolves, together with `records` (in one commit if the engine and the records share a
   * store; otherwise the records are written first). The same ID identifies the same work, whatever its input and kind: the
   * answer is `{ duplicate: true }`, and its records are not written. Ended work is remembered for a day, or as the adapter's
   * options say; after that, its ID is new. Throws RecordConflict, and then nothing was accepted. Throws TypeError for an
   * undefined kind, an input that is not a JSON object, and records that cannot be stored.
   */
  start(kind: string, id: string, input: object, options?: StartOptions): Promise<{ readonly duplicate: boolean }>;
  /**
   * Deliver a signal to the work that waits for `name`. Without a waiter, the signal is kept until the work waits. Each signal
   * goes to one wait, in order. Durable when it resolves. False for unknown or ended work. The payload is JSON. Undefined is
   * delivered as null, because undefined is the answer of a wait that timed out.
   */
  signal(id: string, name: string, payload: unknown): Promise<boolean>;
  /**
   * Abort the work's signal with WorkCancelled. Work that has not begun never begins. Durable when it resolves: the work then
   * ends as `cancelled`, whatever its function returns or throws. False if the work had ended or is unknown.
   */
  cancel(id: string, reason: string): Promise<boolean>;
  status(id: string): Promise<WorkStatus | undefined>;
  /**
   * For a graceful stop. From now on no work begins, but work is still accepted. Resolves when no work executes (work that sleeps
   * or waits for a signal does not count). After `graceMs`, work that still executes is stopped: its signal aborts with
   * EngineStopped.
   */
  drain(graceMs: number): Promise<void>;
}

/** How work of one kind is executed. */
export interface WorkOptions<I extends object> {
  /**
   * What happens to work that was executing when its process died or was stopped. `resume` runs the function again, and finished
   * steps return their stored results. `close` ends it as `interrupted`, after `closed` was called: in any process that defines
   * the kind, at the next start or while others run, one call at a time. A `closed` that fails is called again later. Until one
   * call resolves, it may be called more than once. It must find all that it needs in stores.
   *
   * Work of a `resume` kind that only waits for some time is also parked (WorkParked). Its function runs again when the wait is
   * over. Therefore the function must put into steps everything that has an effect, takes time, or may have another result later.
   * Given the same answers, it must request the same steps, sleeps and waits in the same order. When its signal aborts, it must
   * release its resources and end.
   */
  readonly onInterrupted: "resume" | "close";
  readonly closed?: (id: string, input: I) => Promise<void>;
  /**
   * The work begins with a batch of records: its function calls `beginWith` before anything that has an effect or takes time. Work
   * whose process dies before that has not begun, and is executed. Saves a commit if engine and records share a store; other
   * engines begin the work before they call its function. Default: false.
   */
  readonly beginsWithBatch?: boolean;
  /**
   * Maximum work executing at once: with one key in all processes (default 1), and of the whole kind in one process (default 64).
   * Within one key, the order is first in, first out, over all processes. Keys take turns, in about the order of acceptance. Work
   * that sleeps or waits for a signal occupies its key, parked or not, but does not count for its kind.
   */
  readonly concurrencyPerKey?: number;
  readonly concurrency?: number;
  /**
   * Where work begins if several processes share it. `here` (default): in the process that accepts it, if that process may begin
   * it at once; otherwise in any process. `anywhere`: in the process that takes it first from the common queue.
   */
  readonly begins?: "here" | "anywhere";
}

/** Times of a chore, in milliseconds. */
export interface ChoreOptions {
  /** Time between the end of a run and the next one. */
  readonly everyMs: number;
  /** Time between `ready` and the first run of a chore that never ran. Default 0: at once, without delaying `ready`. */
  readonly firstMs?: number;
}

/** Options of `start`. */
export interface StartOptions {
  /** Work of one kind and key is executed in the order of its acceptance. Default: the work's own ID. */
  readonly key?: string;
  /** Written in the same commit as the acceptance. */
  readonly records?: readonly Write[];
}

/** The services for work's function. They may be destructured. */
export interface WorkContext {
  readonly id: string;
  /** 1 for the first execution. Each execution that resumes it after an interruption adds one. Parking does not count. */
  readonly attempt: number;
  /**
   * Aborts when the work is cancelled (WorkCancelled), when it only waits and is parked (WorkParked), when its lease is lost (EngineFenced)
   * or when the process stops (EngineStopped).
   */
  readonly signal: AbortSignal;
  /**
   * A condition for a batch of records. It writes nothing. The batch throws RecordConflict when this execution has lost the work:
   * another process was given it, or it was parked or has ended. So no batch with it follows the writes of another execution.
   * If engine and records do not share a store, it conflicts only after this process has noticed the loss.
   */
  readonly held: Write;
  /**
   * Begin the work with its first batch of records (`beginsWithBatch`). `run` writes one batch that contains `begun`, which is a condition
   * like `held`. The batch conflicts if the work was cancelled before, or another process has it.
   */
  beginWith<T>(run: (begun: Write) => Promise<T>): Promise<T>;
  /**
   * End the work with its last batch of records. `run` writes one batch that contains `ended`, which is a condition like `held`. When `run`
   * resolves, the work has ended as completed and without a result: in the same commit if engine and records share a store,
   * otherwise right after it. What the function returns or throws afterwards is ignored. If `run` rejects, the work goes on.
   */
  endWith<T>(run: (ended: Write) => Promise<T>): Promise<T>;
  /**
   * Run a step once and store its result, which is returned as JSON keeps it. An error of the step is stored too, by name and
   * message. After a crash, a finished step returns its stored result. A step that began but did not finish runs again if it is
   * `repeatable`. Otherwise it throws StepInterrupted, and the work decides. Work of a `close` kind does not run again: results of its
   * steps are not stored. After `signal` aborted, no step begins: it throws the reason. Each name is used once; TypeError otherwise, and
   * for a result that is not JSON.
   */
  step<T>(name: string, run: (signal: AbortSignal) => Promise<T>, options?: { readonly repeatable?: boolean }): Promise<T>;
  /**
   * A durable sleep: the time counts from the first time it was reached. While the work is parked, it costs a record and no
   * memory. Each name is used once.
   */
  sleep(name: string, ms: number): Promise<void>;
  /**
   * Resolves with the signal's payload, or with undefined after `timeoutMs`, counted from the first time it was reached. A signal
   * that arrives before the wait is kept. A name may be waited for again: each wait gets its own signal.
   */
  waitFor<T>(name: string, options?: { readonly timeoutMs?: number }): Promise<T | undefined>;
  /**
   * The results of finished steps, the steps that had begun and are not repeatable, and the signals, that were stored before this
   * execution began, also those that this execution has not requested. Empty at the first execution. For work that ends early, and must still record what earlier executions
   * had finished.
   */
  earlier(): readonly EarlierResult[];
  /**
   * Run one branch of a function that does several things at once. The work is not parked while a branch does something outside of steps, sleeps
   * and waits, for example reads a store, although all other branches wait. A branch uses only the context that it gets, and its own branches
   * count for it. Code outside of branches does not count: the function waits there for its branches.
   */
  branch<T>(run: (context: WorkContext) => Promise<T>): Promise<T>;
}

/** A result that was stored before an execution of a work began. */
export interface EarlierResult {
  readonly kind: "step" | "begun" | "signal";
  /** The name of the step, or of the signal. */
  readonly name: string;
  /** The result of the step, or the payload of the signal. Undefined for a step that had only begun. */
  readonly value: unknown;
}

/** The state of a work. */
export interface WorkStatus {
  readonly kind: string;
  /** Work that is parked or has not begun is `waiting`. */
  readonly state: "waiting" | "executing" | "completed" | "failed" | "cancelled" | "interrupted";
  readonly attempt: number;
  /** Milliseconds since 1970. */
  readonly acceptedAt: number;
  readonly endedAt?: number | undefined;
  /** The process that executes the work (`engine.process` there). Undefined while no process does, or if it is not known. */
  readonly process?: string | undefined;
  /** The result of completed work. */
  readonly output?: unknown;
  /** For failed work: name and message of its error. For cancelled work: the reason. */
  readonly error?: string | undefined;
}

/** The reason with which the signal of cancelled work aborts. */
export class WorkCancelled extends Error {
  override readonly name = "WorkCancelled";
}

/** The reason with which signals abort when the process stops. The work is resumed or closed, depending on its kind. */
export class EngineStopped extends Error {
  override readonly name = "EngineStopped";
}

/**
 * The reason with which the signal of work that only waits aborts, to free its memory. Its waits reject with this reason.
 * Whatever its function then throws or returns is ignored, and is not a failure. The work is executed again when its wait ends:
 * by a signal of a name that it waits for, by the end of a sleep or a timeout, or by its cancellation. Finished steps then return
 * their stored results. Only work of a `resume` kind is parked, and only after it has done nothing else for the time in the
 * adapter's options. A function that does not end when its signal aborts keeps its memory, and is not started a second time in
 * parallel.
 */
export class WorkParked extends Error {
  override readonly name = "WorkParked";
}

/** Thrown by a step that had begun when its process died and is not repeatable. */
export class StepInterrupted extends Error {
  override readonly name = "StepInterrupted";
}

/** Another process was given the work, because this process lost its lease. Its writes about the work have no effect. */
export class EngineFenced extends Error {
  override readonly name = "EngineFenced";
}

/**
 * Thrown when the engine's store is unreachable, full, or broken, and by an engine that is not ready yet or is closed. Whether a
 * write took effect is then unknown.
 */
export class EngineUnavailable extends Error {
  override readonly name = "EngineUnavailable";
}

/** The port of the engine. */
export const engine: Port<Engine> = definePort<Engine>("engine");
