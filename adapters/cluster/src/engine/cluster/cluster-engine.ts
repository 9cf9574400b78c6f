// One file: taking work, holding its lease and ending it share one state, and a reader of a race needs all of them.
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { checkDuration, ports } from "@portico/core";
import type { PostgresStore } from "../../records/postgres/store.ts";
import { type Chore, createChore } from "@portico/adapters/engine/chores";
import { Insistence } from "@portico/adapters/engine/insistence";
import type { WorkState } from "@portico/adapters/engine/journal";
import { createKind, type Kind } from "@portico/adapters/engine/kind";
import type { Reservation, Seat } from "@portico/adapters/engine/seats";
import { WakeUps } from "@portico/adapters/engine/wake-ups";
import { checkName, fromJsonText, toInputText, toJsonText } from "@portico/adapters/engine/work-text";
import { ChoreRota } from "./chore-rota.ts";
import type { Backlog, ClusterJournal, FoundWork } from "./cluster-journal.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { DueWatch } from "./due-watch.ts";
import { Executions } from "./executions.ts";
import { HintLine } from "./hint-line.ts";
import { KindDesk } from "./kind-desk.ts";
import { LeaseBehindPooler, ProcessLease } from "./process-lease.ts";
import { Upkeep } from "./upkeep.ts";
import type { Acceptance, Hint } from "./work-change.ts";
import type { Offer } from "./work-row.ts";

/** The dependencies of an engine that shares its work with other processes. */
export interface ClusterEngineGiven {
  readonly store: PostgresStore;
  readonly journal: ClusterJournal;
  readonly dispatcher: Dispatcher;
  readonly bus: ports.Bus;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  readonly leaseMs: number;
  readonly keepEndedMs: number;
  readonly parkAfterMs: number;
  /** Whether this process executes work and runs chores, or only accepts work. */
  readonly executes: boolean;
}

/** How long stopped work gets to store its end. Callers that want to wait longer drain first. */
const STOPPING_MS = 1000;

/** The engine port over a journal that several processes share. */
export class ClusterEngine implements ports.Engine {
  readonly process = randomUUID();
  readonly isShared = true;
  readonly #given: ClusterEngineGiven;
  readonly #kinds = new Map<string, Kind>();
  readonly #chores = new Map<string, Chore>();
  readonly #desks = new Map<string, KindDesk>();
  /** IDs of works that are about to begin here: the answer of their commit is on its way. */
  readonly #beginning = new Map<string, number>();
  /** By ID: the last call that cancels a work. */
  readonly #cancelling = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();
  readonly #wakeUps: WakeUps;
  readonly #insistence: Insistence;
  readonly #lease: ProcessLease;
  readonly #hints: HintLine;
  readonly #dueWatch: DueWatch;
  readonly #executions: Executions;
  readonly #rota: ChoreRota;
  #upkeep: Upkeep | undefined;
  #becomingReady: Promise<void> | undefined;
  #isReady = false;
  #isDraining = false;
  #stopped: Error | undefined;
  #whenIdle: (() => void) | undefined;

  constructor(given: ClusterEngineGiven) {
    this.#given = given;
    const { journal, store, bus, clock, log, leaseMs, parkAfterMs } = given;
    if (!(parkAfterMs >= 0)) throw new RangeError("parkAfterMs is a number of milliseconds from 0");
    const offer = (offers: readonly Offer[]) => this.#offer(offers);
    this.#wakeUps = new WakeUps(clock);
    this.#insistence = new Insistence({ clock, log, signal: this.#closing.signal, onFailure() {} });
    this.#dueWatch = new DueWatch({ journal, clock, wakeUps: this.#wakeUps, offer });
    this.#executions = new Executions({
      ...{ journal, clock, log, parkAfterMs, wakeUps: this.#wakeUps, offer },
      insist: (ask, signal) => this.#insistence.until(ask, signal),
      expect: (at) => this.#dueWatch.expect(at),
    });
    this.#hints = new HintLine(bus, this.#executions);
    this.#lease = new ProcessLease({
      ...{ store, log, leaseMs, process: this.process },
      onHeld: (lease) => this.#resume(lease),
      onLost: () => this.#fence(),
      onGone: (lease) => void this.#takeOver(lease),
    });
    this.#rota = new ChoreRota({ store, clock, log, wakeUps: this.#wakeUps, lease: () => this.#lease.number });
  }

  define<I extends object, O>(
    kind: string,
    work: (context: ports.WorkContext, input: I) => Promise<O>,
    options: ports.WorkOptions<I>,
  ): void {
    if (this.#becomingReady) throw new TypeError(`The kind ${kind} is defined after the engine was ready`);
    if (this.#kinds.has(kind)) throw new TypeError(`The kind ${kind} is defined twice`);
    this.#kinds.set(kind, createKind(kind, work, options));
  }

  chore(name: string, options: ports.ChoreOptions, run: (signal: AbortSignal) => Promise<void>): void {
    if (this.#becomingReady) throw new TypeError(`The chore ${name} is defined after the engine was ready`);
    if (this.#chores.has(name)) throw new TypeError(`The chore ${name} is defined twice`);
    this.#chores.set(name, createChore(name, options, run));
  }

  ready(): Promise<void> {
    return (this.#becomingReady ??= this.#becomeReady());
  }

  async #becomeReady(): Promise<void> {
    const { journal, executes, ...given } = this.#given;
    await this.#lease.open().catch((cause: unknown) => {
      const isPooled = cause instanceof LeaseBehindPooler;
      throw new ports.EngineUnavailable(isPooled ? cause.message : "The engine cannot get a lease from the database", { cause });
    });
    this.#isReady = true;
    const kinds = executes ? [...this.#kinds.values()] : [];
    for (const kind of kinds) this.#open(kind);
    this.#upkeep = new Upkeep({
      ...{ ...given, journal, executions: this.#executions, dueWatch: this.#dueWatch, rota: this.#rota, wakeUps: this.#wakeUps },
      lease: () => this.#lease.number,
      isBeginning: (id) => this.#beginning.has(id),
      offer: (offers) => this.#offer(offers),
    });
    this.#upkeep.begin();
    const closing = kinds.filter(({ onInterrupted }) => onInterrupted === "close");
    this.#offer(await journal.interrupt(closing.map(({ kind }) => kind)));
    await this.#dueWatch.look();
    if (executes) await this.#rota.begin(this.#chores);
  }

  #open(kind: Kind): void {
    const desk = new KindDesk({
      kind,
      mayBegin: () => !this.#isDraining && this.#lease.isHeld,
      execute: (of, offer, seat) => this.#execute(of, offer, seat),
      onLeave: () => this.#noticeIdle(),
    });
    this.#desks.set(kind.kind, desk);
    desk.open(this.#given.dispatcher.consume(kind.kind, desk));
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
    const text = toInputText(input);
    this.#assertReady();
    const seat = this.#seatFor(found);
    // Work that is closed after a crash must begin in a commit of its own: otherwise it would look like work that was executing.
    const beginsAt = seat && found.onInterrupted === "resume" ? this.#lease.number : undefined;
    let isSeated = false;
    try {
      const work = { kind, id, key, input: text, acceptedAt: this.#given.clock.now(), keyLimit: found.keyLimit, beginsAt };
      const accept = () => this.#given.journal.accept(work, options.records ?? []);
      const accepted = await (seat ? this.#whileBeginning(id, accept) : accept());
      isSeated = accepted !== undefined && this.#beginAccepted(found, accepted, seat);
      if (accepted && !isSeated) this.#offer(accepted.offers);
      return { duplicate: accepted === undefined };
    } finally {
      if (!isSeated) seat?.release();
    }
  }

  /** A seat here, if accepted work of this kind begins here. */
  #seatFor(kind: Kind): Reservation | undefined {
    if (kind.begins !== "here" || !this.#given.dispatcher.isIdle(kind.kind)) return undefined;
    return this.#desks.get(kind.kind)?.reserve();
  }

  /** Execute accepted work that begins here. False if it does not. */
  #beginAccepted(kind: Kind, { begun, offers: [offer] }: Acceptance, seat: Reservation | undefined): boolean {
    if (!seat || (!begun && !offer)) return false;
    seat.begin((taken) => (begun ? this.#executions.perform(kind, begun, taken) : this.#execute(kind, offer!, taken)));
    return true;
  }

  async signal(id: string, name: string, payload: unknown): Promise<boolean> {
    checkName("The name of a signal", name);
    const text = toJsonText("The payload of a signal", payload) ?? "null";
    this.#assertReady();
    const delivery = await this.#given.journal.signal(id, name, text);
    if (!delivery) return false;
    this.#tell(delivery.hint);
    this.#offer(delivery.offers);
    return true;
  }

  async cancel(id: string, reason: string): Promise<boolean> {
    this.#assertReady();
    // The first reason counts, so calls for one work are made one after another.
    const cancelled = (this.#cancelling.get(id) ?? Promise.resolve()).then(() => this.#cancel(id, reason));
    const settled = cancelled.then(
      () => {},
      () => {},
    );
    this.#cancelling.set(id, settled);
    try {
      return await cancelled;
    } finally {
      if (this.#cancelling.get(id) === settled) this.#cancelling.delete(id);
    }
  }

  async #cancel(id: string, reason: string): Promise<boolean> {
    const { journal, clock } = this.#given;
    const found = await journal.find(id);
    if (!found || found.endedAt !== undefined) return false;
    const { kind, key } = found;
    const of = { kind, key, keyLimit: this.#kinds.get(kind)?.keyLimit ?? 1 };
    const delivery = await journal.cancel(id, of, reason, clock.now());
    if (!delivery) return false;
    this.#executions.cancel(delivery.work, delivery.reason ?? reason);
    this.#tell(delivery.hint);
    this.#offer(delivery.offers);
    return true;
  }

  async status(id: string): Promise<ports.WorkStatus | undefined> {
    const found = await this.#given.journal.find(id);
    if (!found) return undefined;
    const { kind, attempt, acceptedAt, endedAt, output, error, process } = found;
    return { kind, state: stateOf(found), attempt, acceptedAt, endedAt, process, output: fromJsonText(output), error };
  }

  async drain(graceMs: number): Promise<void> {
    const { clock } = this.#given;
    const grace = checkDuration(graceMs);
    this.#isDraining = true;
    this.#closeDesks();
    const chores = this.#rota.stop(new ports.EngineStopped("The engine stops"));
    const over = new AbortController();
    const idle = new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
      this.#noticeIdle();
    });
    await Promise.race([Promise.all([idle, chores]), clock.sleep(grace, over.signal).catch(() => {})]);
    over.abort();
    await this.#stopAndSettle();
  }

  /** Stop executing work, give it to other processes, and accept no more. */
  async close(): Promise<void> {
    const { journal, dispatcher } = this.#given;
    this.#isDraining = true;
    // A fetch that still waits here would take an offer that follows, and the work would wait until the queue gives the offer to another process.
    await dispatcher.stop();
    this.#closeDesks();
    await this.#stopAndSettle();
    await this.#rota.stop(this.#stopped!);
    this.#isReady = false;
    this.#closing.abort();
    this.#wakeUps.stop();
    this.#dueWatch.stop();
    await this.#upkeep?.stop();
    const lease = this.#lease.number;
    await this.#lease.close();
    this.#hints.close();
    // If this fails, another process finds the works of the lease that has ended.
    if (lease !== 0)
      await journal
        .lose(lease)
        .then(dispatcher.offer)
        .catch(() => {});
    await dispatcher.close();
  }

  /** Why this process cannot do its part of the work; undefined if it can. */
  get fault(): string | undefined {
    if (this.#isDraining) return "the process gives its work up";
    return this.#isReady ? this.#lease.fault : "not taken yet";
  }

  /** Milliseconds since the lease was renewed. */
  get leaseAgeMs(): number {
    return this.#lease.ageMs;
  }

  /** The kinds that this process executes, each with its seats. */
  get seats(): readonly { readonly kind: string; readonly taken: number; readonly limit: number }[] {
    return [...this.#desks.values()].map(({ kind: { kind, concurrency }, taken }) => ({ kind, taken, limit: concurrency }));
  }

  /** The works of all processes that wait for a seat. Rejects with EngineUnavailable. */
  backlog(): Promise<readonly Backlog[]> {
    return this.#given.journal.backlog([...this.#kinds.keys()]);
  }

  #assertReady(): void {
    if (this.#closing.signal.aborted) throw new ports.EngineUnavailable("The engine is closed");
    if (!this.#isReady) throw new ports.EngineUnavailable("The engine is not ready yet");
  }

  /** Begin offered work, if the offer still stands. Never rejects. */
  async #execute(kind: Kind, offer: Offer, seat: Seat): Promise<void> {
    const { journal, log } = this.#given;
    try {
      const closes = kind.onInterrupted === "close";
      let isOffered = false;
      const begin = () =>
        journal.begin(offer, this.#lease.number, closes).catch((error: unknown) => {
          // Another process may have a connection. If the commit took effect, this one gets its answer later. Once: the queue would
          // keep an offer of each attempt.
          if (!isOffered) void this.#given.dispatcher.offer([offer]).catch(() => {});
          isOffered = true;
          throw error;
        });
      const begun = await this.#whileBeginning(offer.id, () => this.#insistence.until(begin));
      if (begun) await this.#executions.perform(kind, begun, seat);
    } catch (error) {
      if (error instanceof ports.EngineFenced) await this.#lease.check();
      else if (!this.#stopped) log.error("Work could not begin", { kind: kind.kind, id: offer.id }, error);
    }
  }

  async #whileBeginning<T>(id: string, begin: () => Promise<T>): Promise<T> {
    this.#beginning.set(id, (this.#beginning.get(id) ?? 0) + 1);
    try {
      return await begin();
    } finally {
      const others = this.#beginning.get(id)! - 1;
      if (others > 0) this.#beginning.set(id, others);
      else this.#beginning.delete(id);
    }
  }

  /** Let any process begin works. Without the common queue, this one does. */
  #offer(offers: readonly Offer[]): void {
    if (offers.length === 0) return;
    this.#given.dispatcher.offer(offers).catch(() => {
      if (this.#isDraining) return;
      for (const [kind, some] of Map.groupBy(offers, ({ kind }) => kind)) this.#desks.get(kind)?.keep(some);
    });
  }

  /** Work may begin here, and others know where to send hints. */
  #resume(lease: number): void {
    this.#hints.listen(lease);
    for (const desk of this.#desks.values()) desk.pump();
  }

  #tell(hint: Hint | undefined): void {
    if (hint) this.#hints.tell(hint);
  }

  #fence(): void {
    const error = new ports.EngineFenced("The lease of this process is lost");
    this.#executions.fence(error);
    this.#rota.abort(error);
  }

  async #takeOver(lease: number): Promise<void> {
    this.#given.log.info("A process is lost: its work is given to others");
    try {
      this.#offer(await this.#given.journal.lose(lease));
      await this.#dueWatch.look();
      await this.#rota.look();
    } catch (error) {
      this.#given.log.warn("The work of a lost process will be given to others later", {}, error);
    }
  }

  #closeDesks(): void {
    const kept = [...this.#desks.values()].flatMap((desk) => desk.close());
    void this.#given.dispatcher.offer(kept).catch(() => {});
  }

  #noticeIdle(): void {
    if (this.#whenIdle && [...this.#desks.values()].every(({ taken }) => taken === 0)) this.#whenIdle();
  }

  async #stopAndSettle(): Promise<void> {
    this.#stopped ??= new ports.EngineStopped("The engine stops");
    this.#executions.stop(this.#stopped);
    const until = performance.now() + STOPPING_MS;
    while (this.#executions.size > 0 && performance.now() < until) await wait(5);
  }
}

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

/** Work whose end is told again has ended. */
function stateOf({ state, endedAt }: FoundWork): ports.WorkStatus["state"] {
  const isTold = endedAt !== undefined && (state === "lined" || state === "executing");
  return isTold ? "interrupted" : STATES[state];
}
