// One file: the states of work in one process change each other, and a reader of a race needs all of them.
import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { checkDuration, ports } from "@portico/core";
import { type Chore, createChore, TimedChores } from "./chores.ts";
import { DueWork } from "./due-work.ts";
import { Execution, type Parking } from "./execution.ts";
import { Insistence, RETRY_MS } from "./insistence.ts";
import type { Ending, Journal, NewWork, Note, OpenWork, Place, Rest, WorkState } from "./journal.ts";
import { createKind, type Kind } from "./kind.ts";
import { KindLine } from "./kind-line.ts";
import { outcomeOf } from "./outcome-of.ts";
import { Ownership } from "./ownership.ts";
import type { Reservation, Seat } from "./seats.ts";
import { WakeUps } from "./wake-ups.ts";
import { checkName, fromJsonText, toInputText, toJsonText } from "./work-text.ts";

/** The dependencies of an engine. */
export interface EngineSettings {
  readonly journal: Journal;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  readonly owner: string;
  readonly leaseMs: number;
  readonly keepEndedMs: number;
  /** Work of `resume` kinds is parked after it has only waited for this time. Infinity: never. */
  readonly parkAfterMs: number;
}

/** How many ended works one commit deletes. Limits how long the event loop is blocked. */
const PRUNED_AT_ONCE = 200;
/** How many interrupted works are closed at once. */
const CLOSED_AT_ONCE = 64;
/**
 * How many turns of the event loop work gets to end after its signal aborted: enough for several commits. Callers that want to
 * wait longer drain first. Counted in turns, because test clocks do not advance.
 */
const STOPPING_TURNS = 100;

const STATES: Readonly<Record<WorkState, ports.WorkStatus["state"]>> = {
  queued: "waiting",
  lined: "waiting",
  executing: "executing",
  parked: "waiting",
  unclosed: "interrupted",
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "interrupted",
};

/** A work from before it begins until after it has ended. It can be stopped during all this time. */
interface Running {
  readonly stop: AbortController;
  /** Undefined until its function can be called. */
  execution?: Execution;
  /** Its new place in the queue, if it came back before the end of its function was noticed. */
  again?: Place;
}

/** Events for work that is being accepted. They take effect as soon as it executes. */
interface Early {
  readonly notes: Note[];
  reason?: string;
}

/** The engine port over a journal. `close` stops executing work and releases the ownership. */
export function createEngine(settings: EngineSettings): ports.Engine & { close(): Promise<void> } {
  return new JournalEngine(settings);
}

class JournalEngine implements ports.Engine {
  readonly process = randomUUID();
  readonly isShared = false;
  readonly #journal: Journal;
  readonly #clock: ports.Clock;
  readonly #log: ports.Log;
  readonly #keepEndedMs: number;
  readonly #parkAfterMs: number;
  readonly #ownership: Ownership;
  readonly #insistence: Insistence;
  readonly #wakeUps: WakeUps;
  readonly #dueWork: DueWork;
  readonly #kinds = new Map<string, Kind>();
  readonly #lines = new Map<string, KindLine>();
  /** By the journal's number. */
  readonly #running = new Map<number, Running>();
  /** By ID: work that begins in the commit that accepts it. */
  readonly #accepting = new Map<string, Early>();
  readonly #chores = new Map<string, Chore>();
  readonly #timedChores: TimedChores;
  readonly #closing = new AbortController();
  #stopped: Error | undefined;
  #readied = false;
  #becomingReady: Promise<void> | undefined;
  #draining = false;
  #pruning = false;
  #whenIdle: (() => void) | undefined;

  constructor({ journal, clock, log, owner, leaseMs, keepEndedMs, parkAfterMs }: EngineSettings) {
    this.#journal = journal;
    this.#clock = clock;
    this.#log = log;
    this.#keepEndedMs = keepEndedMs;
    if (!(parkAfterMs >= 0)) throw new RangeError("parkAfterMs is a number of milliseconds from 0");
    this.#parkAfterMs = parkAfterMs;
    this.#insistence = new Insistence({
      clock,
      log,
      signal: this.#closing.signal,
      onFailure: (error) => this.#ownership.notice(error),
    });
    this.#wakeUps = new WakeUps(clock);
    this.#timedChores = new TimedChores({ clock, log });
    this.#dueWork = new DueWork({
      journal,
      clock,
      wakeUps: this.#wakeUps,
      insist: (ask) => this.#insist(ask),
      add: (places) => this.#add(places),
      onFailed: (error) => this.#stopped ?? log.error("Parked work that is due could not be brought back", {}, error),
    });
    this.#ownership = new Ownership({
      journal,
      clock,
      log,
      owner,
      leaseMs,
      onLateClaim: () => this.#takeUp(),
      onLost: (error) => this.#stop(error),
      onRenew: () => this.#tidy(),
    });
  }

  define<I extends object, O>(
    kind: string,
    work: (context: ports.WorkContext, input: I) => Promise<O>,
    options: ports.WorkOptions<I>,
  ): void {
    if (this.#readied) throw new TypeError(`The kind ${kind} is defined after the engine was ready`);
    if (this.#kinds.has(kind)) throw new TypeError(`The kind ${kind} is defined twice`);
    this.#kinds.set(kind, createKind(kind, work, options));
  }

  chore(name: string, options: ports.ChoreOptions, run: (signal: AbortSignal) => Promise<void>): void {
    if (this.#readied) throw new TypeError(`The chore ${name} is defined after the engine was ready`);
    if (this.#chores.has(name)) throw new TypeError(`The chore ${name} is defined twice`);
    this.#chores.set(name, createChore(name, options, run));
  }

  ready(): Promise<void> {
    return (this.#becomingReady ??= this.#becomeReady());
  }

  async #becomeReady(): Promise<void> {
    this.#readied = true;
    for (const kind of this.#kinds.values()) this.#lines.set(kind.kind, this.#lineOf(kind));
    if (await this.#ownership.claim()) await this.#takeUp();
  }

  async start(
    kind: string,
    id: string,
    input: object,
    options: ports.StartOptions = {},
  ): Promise<{ readonly duplicate: boolean }> {
    const found = this.#kinds.get(kind);
    if (!found) throw new TypeError(`The kind ${kind} is not defined`);
    checkName("The id of work", id);
    const key = checkName("The key of work", options.key ?? id);
    const work = { kind, id, key, input: toInputText(input), acceptedAt: this.#clock.now() };
    this.#ownership.assert();
    const records = options.records ?? [];
    // Work that is closed after a crash must wait for its turn: otherwise it would look like work that was executing.
    const reserved = found.onInterrupted === "resume" && !this.#accepting.has(id) && this.#lines.get(kind)?.reserve();
    if (reserved) return { duplicate: await this.#acceptAtOnce(found, work, records, reserved) };
    const { duplicate, places } = await this.#write(this.#journal.accept({ ...work, atOnce: false }, records));
    this.#add(places);
    return { duplicate };
  }

  /** Accept work that may begin at once, and begin it in the same commit. */
  async #acceptAtOnce(kind: Kind, work: Omit<NewWork, "atOnce">, records: readonly ports.Write[], seat: Reservation) {
    const early: Early = { notes: [] };
    this.#accepting.set(work.id, early);
    let isBegun = false;
    try {
      const { duplicate, places, begun } = await this.#write(this.#journal.accept({ ...work, atOnce: true }, records));
      this.#add(places);
      if (begun) {
        isBegun = true;
        const notes = [{ kind: "input", name: "", number: 0, state: "done", value: work.input } as const, ...early.notes];
        seat.begin((taken) => this.#executeAccepted(kind, { ...begun, reason: early.reason }, notes, taken));
      }
      return duplicate;
    } finally {
      this.#accepting.delete(work.id);
      if (!isBegun) seat.release();
    }
  }

  async signal(id: string, name: string, payload: unknown): Promise<boolean> {
    checkName("The name of a signal", name);
    const text = toJsonText("The payload of a signal", payload) ?? "null";
    this.#ownership.assert();
    const signal = await this.#write(this.#journal.signal(id, name, text));
    if (!signal) return false;
    const running = this.#running.get(signal.work);
    if (running) running.execution?.tell(signal.note);
    else this.#accepting.get(id)?.notes.push(signal.note);
    this.#add(signal.places);
    return true;
  }

  async cancel(id: string, reason: string): Promise<boolean> {
    this.#ownership.assert();
    const { work, places } = await this.#write(this.#journal.cancel(id, reason, this.#clock.now()));
    this.#add(places);
    if (work === undefined) return false;
    const [running, early] = [this.#running.get(work), this.#accepting.get(id)];
    if (running) running.stop.abort(new ports.WorkCancelled(reason));
    else if (early) early.reason ??= reason;
    return true;
  }

  async status(id: string): Promise<ports.WorkStatus | undefined> {
    const found = this.#journal.find(id);
    if (!found) return undefined;
    const { kind, state, attempt, acceptedAt, endedAt, output, error } = found;
    const process = state === "executing" && this.#ownership.isOwner ? this.process : undefined;
    return { kind, state: STATES[state], attempt, acceptedAt, endedAt, process, output: fromJsonText(output), error };
  }

  async drain(graceMs: number): Promise<void> {
    const grace = checkDuration(graceMs);
    this.#draining = true;
    for (const line of this.#lines.values()) line.close();
    const over = new AbortController();
    const idle = new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
      this.#noticeIdle();
    });
    await Promise.race([Promise.all([idle, this.#timedChores.stop()]), this.#clock.sleep(grace, over.signal).catch(() => {})]);
    over.abort();
    await this.#stopAndSettle();
  }

  /** Stop executing work, let other processes take over, and accept no more. */
  async close(): Promise<void> {
    await this.#stopAndSettle();
    await this.#timedChores.stop();
    this.#closing.abort();
    this.#wakeUps.stop();
    await this.#ownership.close();
  }

  #lineOf(kind: Kind): KindLine {
    return new KindLine({
      limit: kind.concurrency,
      load: (after, limit) => this.#journal.line(kind.kind, after, limit),
      execute: (place, seat) => this.#execute(kind, place, seat),
      onLeave: () => this.#noticeIdle(),
      onUnreadable: (error) => {
        this.#log.error("The engine's journal cannot be read", { kind: kind.kind }, error);
        this.#wakeUps.add(this.#clock.now() + RETRY_MS, () => this.#lines.get(kind.kind)?.pump());
      },
    });
  }

  async #takeUp(): Promise<void> {
    const interrupted = await this.#insist(() => this.#journal.takeUp([...this.#kinds.values()]));
    for (let from = 0; from < interrupted.length; from += CLOSED_AT_ONCE) {
      await Promise.all(interrupted.slice(from, from + CLOSED_AT_ONCE).map((work) => this.#tellClosed(work)));
    }
    if (this.#draining || this.#stopped) return;
    for (const line of this.#lines.values()) line.open();
    this.#timedChores.begin(this.#chores);
    await this.#dueWork.look();
  }

  /** Execute a work of the queue, if it is still queued. Never rejects. */
  async #execute(kind: Kind, place: Place, seat: Seat): Promise<void> {
    const { work } = place;
    const present = this.#running.get(work);
    // Never twice in parallel. Whether it came back, or was only loaded twice, shows when it begins.
    if (present) return void (present.again = place);
    await this.#occupy(kind, work, async (running) => {
      const begun = await this.#insist(async () => this.#nextOf(kind, work));
      if (!begun) return;
      const notes = await this.#insist(async () => this.#journal.notes(work));
      await this.#perform(kind, begun, notes, running, seat);
    });
  }

  #nextOf(kind: Kind, work: number): OpenWork | undefined | Promise<OpenWork | undefined> {
    return this.#beginsLate(kind) ? this.#journal.next?.(work) : this.#journal.begin(work);
  }

  /** Whether work of this kind begins in the journal with its first batch of records, and not before its function is called. */
  #beginsLate(kind: Kind): boolean {
    return kind.beginsWithBatch && this.#journal.next !== undefined;
  }

  /**
   * Execute work that began when it was accepted. From here on it can get signals and be stopped, without a turn of the event
   * loop in between. Never rejects.
   */
  async #executeAccepted(kind: Kind, begun: OpenWork, notes: readonly Note[], seat: Seat): Promise<void> {
    // The next process resumes it.
    if (this.#stopped) return;
    await this.#occupy(kind, begun.work, (running) => this.#perform(kind, begun, notes, running, seat));
  }

  async #occupy(kind: Kind, work: number, execute: (running: Running) => Promise<void>): Promise<void> {
    const running: Running = { stop: new AbortController() };
    this.#running.set(work, running);
    try {
      await execute(running);
    } catch (error) {
      // Fenced or closed: the work belongs to another process, or to the next one.
      if (!this.#stopped) this.#log.error("Work could not be executed", { kind: kind.kind, work }, error);
    } finally {
      this.#running.delete(work);
      if (running.again) this.#add([running.again]);
    }
  }

  async #perform(kind: Kind, begun: OpenWork, notes: readonly Note[], running: Running, seat: Seat): Promise<void> {
    const { work, reason } = begun;
    // Cancelled before it could begin or continue here: while it was parked or accepted, or in a process that died.
    if (reason !== undefined) running.stop.abort(new ports.WorkCancelled(reason));
    const execution = new Execution(begun, {
      clock: this.#clock,
      wakeUps: this.#wakeUps,
      seat,
      signal: running.stop.signal,
      notes,
      mayResume: kind.onInterrupted === "resume",
      parking: this.#parkingOf(kind, running),
      held: (isLost) => this.#journal.held(work, isLost),
      begun: (isLost) => this.#journal.begun(work, isLost),
      ended: (isLost) => this.#journal.ended(work, this.#clock.now(), isLost),
      announce: (note: Note) => this.#insist(() => this.#journal.note(work, note), running.stop.signal),
      insist: (note: Note) => this.#insist(() => this.#journal.note(work, note)),
    });
    running.execution = execution;
    const outcome = await outcomeOf(kind, execution, { clock: this.#clock, log: this.#log, stopped: () => this.#stopped });
    execution.finish();
    if (execution.hasEnded) return this.#afterEnd(work);
    if (execution.rest) return this.#park(work, execution.rest);
    if (outcome) {
      await this.#end(work, outcome.ending);
      return outcome.logFailure();
    }
    // Stopped before it began in the journal: it stays lined up.
    if (this.#beginsLate(kind) && !execution.hasBegun) return;
    // Stopped before its end. Work of a `resume` kind stays as it is, for the next process.
    if (kind.onInterrupted === "close" && !(this.#stopped instanceof ports.EngineFenced)) await this.#tellClosed(begun);
  }

  #parkingOf(kind: Kind, { stop }: Running): Parking | undefined {
    if (kind.onInterrupted !== "resume" || this.#parkAfterMs === Number.POSITIVE_INFINITY) return undefined;
    return {
      afterMs: this.#parkAfterMs,
      park: () => stop.abort(new ports.WorkParked("The work only waits, and is executed again when what it waits for is there")),
    };
  }

  async #park(work: number, rest: Rest): Promise<void> {
    const places = await this.#insist(() => this.#journal.park(work, rest));
    if (places.length === 0) this.#dueWork.expect(rest.until);
    this.#add(places);
  }

  /** Report the end of interrupted work. If that fails, its key continues, and the next start reports it. */
  async #tellClosed({ work, id, kind }: OpenWork): Promise<void> {
    let state: Ending["state"] = "interrupted";
    try {
      const input = this.#journal.notes(work).find((note) => note.kind === "input");
      await this.#kinds.get(kind)?.closed(id, fromJsonText(input?.value) as object);
    } catch (error) {
      state = "unclosed";
      this.#log.error("The end of interrupted work could not be told, and will be at the next start", { kind, id }, error);
    }
    await this.#end(work, { state, endedAt: this.#clock.now() });
  }

  /** A batch of records was the end of the work. */
  async #afterEnd(work: number): Promise<void> {
    const places = this.#journal.nextAfter(work);
    if (places) this.#add(places);
    else await this.#end(work, { state: "completed", endedAt: this.#clock.now() });
  }

  async #end(work: number, ending: Ending): Promise<void> {
    this.#add(await this.#insist(() => this.#journal.end(work, ending)));
  }

  #add(places: readonly Place[]): void {
    for (const place of places) this.#lines.get(place.kind)?.add(place);
  }

  #write<T>(write: Promise<T>): Promise<T> {
    return this.#ownership.watch(write);
  }

  /** Retries while the journal is unavailable, until `signal` aborts or the engine closes. */
  #insist<T>(write: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    return this.#insistence.until(write, signal);
  }

  #noticeIdle(): void {
    if (this.#whenIdle && [...this.#lines.values()].every((line) => line.executing === 0)) this.#whenIdle();
  }

  async #stopAndSettle(): Promise<void> {
    this.#stop(new ports.EngineStopped("The engine stops"));
    for (let turn = 0; this.#running.size > 0 && turn < STOPPING_TURNS; turn++) await nextTurn();
  }

  #stop(reason: Error): void {
    this.#stopped ??= reason;
    void this.#timedChores.stop();
    for (const line of this.#lines.values()) line.close();
    for (const { stop } of this.#running.values()) stop.abort(this.#stopped);
  }

  /** Periodic maintenance. */
  async #tidy(): Promise<void> {
    this.#wakeUps.run();
    if (this.#pruning) return;
    this.#pruning = true;
    try {
      const before = this.#clock.now() - this.#keepEndedMs;
      let pruned = PRUNED_AT_ONCE;
      while (pruned === PRUNED_AT_ONCE && !this.#stopped) {
        pruned = await this.#write(this.#journal.prune(before, PRUNED_AT_ONCE));
      }
    } finally {
      this.#pruning = false;
    }
  }
}
