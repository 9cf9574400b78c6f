import { ports } from "@portico/core";
import { Execution, type Parking } from "@portico/adapters/engine/execution";
import type { Ending, Note } from "@portico/adapters/engine/journal";
import type { Kind } from "@portico/adapters/engine/kind";
import { outcomeOf } from "@portico/adapters/engine/outcome-of";
import type { Seat } from "@portico/adapters/engine/seats";
import type { WakeUps } from "@portico/adapters/engine/wake-ups";
import { fromJsonText } from "@portico/adapters/engine/work-text";
import type { ClusterJournal, News } from "./cluster-journal.ts";
import type { Begun } from "./work-change.ts";
import type { Offer } from "./work-row.ts";

/** The dependencies of the executions of one process. */
export interface ExecutionsGiven {
  readonly journal: ClusterJournal;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  readonly wakeUps: WakeUps;
  /** Work of `resume` kinds is parked after it has only waited for this time. */
  readonly parkAfterMs: number;
  /** Retries while the journal is unavailable, until `signal` aborts or the engine closes. */
  insist<T>(ask: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Any process may begin these works. */
  offer(offers: readonly Offer[]): void;
  /** Work was parked, and is due at this time. */
  expect(at: number | undefined): void;
}

/** Pause before the end of a work is told again that could not be told. */
const RETELL_MS = 60_000;

/** One execution, from before its function is called until its end is stored. */
interface Running {
  readonly kind: Kind;
  readonly begun: Begun;
  readonly stop: AbortController;
  execution?: Execution;
  /** The end that a batch of records may bring. */
  end?: ReturnType<ClusterJournal["ended"]>;
  /** The highest number of a signal that it was told. */
  known: number;
}

function ofKey({ kind, begun }: Running) {
  return { kind: begun.kind, key: begun.key, keyLimit: kind.keyLimit };
}

/** The works that this process executes, and what others change about them. */
export class Executions {
  readonly #given: ExecutionsGiven;
  /** By the journal's number. */
  readonly #running = new Map<number, Running>();
  /** Works to look up in the journal. */
  readonly #doubtful = new Set<number>();
  /** Hints about works that do not execute here yet: the answer of their commit may still be on its way. Two ages. */
  #early = [new Set<number>(), new Set<number>()] as const;
  #isLookingUp = false;
  #stopped: Error | undefined;

  constructor(given: ExecutionsGiven) {
    this.#given = given;
  }

  get size(): number {
    return this.#running.size;
  }

  has(work: number): boolean {
    return this.#running.has(work);
  }

  /** Execute a work that has begun, or tell its end. Never rejects. */
  async perform(kind: Kind, begun: Begun, seat: Seat): Promise<void> {
    // Another process continues it, after this one has given its lease up.
    if (this.#stopped) return;
    // Offered twice: both were told that it began.
    if (this.#running.get(begun.work)?.begun.fence === begun.fence) return;
    const known = begun.notes.reduce((most, note) => (note.kind === "signal" ? Math.max(most, note.number) : most), 0);
    const running: Running = { kind, begun, stop: new AbortController(), known };
    this.#running.set(begun.work, running);
    try {
      await this.#perform(running, seat);
    } catch (error) {
      // Fenced or closed: the work belongs to another execution, or to another process soon.
      const isExpected = this.#stopped !== undefined || error instanceof ports.EngineFenced;
      if (!isExpected) this.#given.log.error("Work could not be executed", { kind: kind.kind, id: begun.id }, error);
    } finally {
      if (this.#running.get(begun.work) === running) this.#running.delete(begun.work);
    }
  }

  /** Others have changed something about a work. */
  hint(work: number): void {
    if (!this.#running.has(work)) return void this.#early[0].add(work);
    this.#doubtful.add(work);
    if (!this.#isLookingUp) void this.#lookUp();
  }

  /** Hints may have been lost. */
  hintAll(): void {
    this.#early = [new Set(), this.#early[0]];
    for (const work of this.#running.keys()) this.hint(work);
  }

  /** A cancellation is durable. */
  cancel(work: number, reason: string): void {
    this.#running.get(work)?.stop.abort(new ports.WorkCancelled(reason));
  }

  /** Abort all executions. The works are given to other processes. */
  fence(error: ports.EngineFenced): void {
    for (const { stop } of this.#running.values()) stop.abort(error);
  }

  /** Abort all executions, and perform no more. */
  stop(reason: Error): void {
    this.#stopped ??= reason;
    for (const { stop } of this.#running.values()) stop.abort(this.#stopped);
  }

  async #perform(running: Running, seat: Seat): Promise<void> {
    const { kind, begun, stop } = running;
    const { clock, log, wakeUps, journal, insist, offer, expect } = this.#given;
    if (begun.isInterrupted && kind.onInterrupted === "close") return this.#tellClosed(running);
    // Cancelled by a process that died before it could end the work.
    if (begun.reason !== undefined) stop.abort(new ports.WorkCancelled(begun.reason));
    const note = (each: Note) => this.#fencing(running, () => journal.note(begun, each));
    const execution = new Execution(begun, {
      ...{ clock, wakeUps, seat, signal: stop.signal, notes: begun.notes },
      mayResume: kind.onInterrupted === "resume",
      parking: this.#parkingOf(running),
      held: () => journal.held(begun),
      begun: () => journal.held(begun),
      ended: () => (running.end ??= journal.ended(begun, ofKey(running), { state: "completed", endedAt: clock.now() })).write,
      announce: (each) => insist(() => note(each), stop.signal),
      insist: (each) => insist(() => note(each)),
    });
    running.execution = execution;
    if (this.#early.some((hints) => hints.delete(begun.work))) this.hint(begun.work);
    const outcome = await outcomeOf(kind, execution, { clock, log, stopped: () => this.#stopped });
    execution.finish();
    running.end?.forget();
    if (execution.hasEnded) return offer(running.end?.effect().offers ?? []);
    if (stop.signal.reason instanceof ports.EngineFenced) return;
    const { rest } = execution;
    if (rest) {
      const { offers } = await insist(() => journal.park(begun, rest));
      if (offers.length === 0) expect(rest.until);
      return offer(offers);
    }
    if (outcome) {
      await this.#end(running, outcome.ending);
      return outcome.logFailure();
    }
    // Stopped before its end. Work of a `resume` kind is given to another process.
    if (kind.onInterrupted === "close") await this.#tellClosed(running);
  }

  #parkingOf({ kind, stop }: Running): Parking | undefined {
    const { parkAfterMs } = this.#given;
    if (kind.onInterrupted !== "resume" || parkAfterMs === Number.POSITIVE_INFINITY) return undefined;
    return {
      afterMs: parkAfterMs,
      park: () => stop.abort(new ports.WorkParked("The work only waits, and is executed again when what it waits for is there")),
    };
  }

  /** Report the end of interrupted work. If that fails, its key continues, and the end is reported later. */
  async #tellClosed(running: Running): Promise<void> {
    const { kind, begun } = running;
    const { clock, log } = this.#given;
    let state: Ending["state"] = "interrupted";
    try {
      const input = begun.notes.find((note) => note.kind === "input");
      await kind.closed(begun.id, fromJsonText(input?.value) as object);
    } catch (error) {
      state = "unclosed";
      const { id } = begun;
      log.error("The end of interrupted work could not be told, and will be told later", { kind: kind.kind, id }, error);
    }
    await this.#end(running, { state, endedAt: clock.now() });
  }

  async #end(running: Running, ending: Ending): Promise<void> {
    const { begun } = running;
    const of = ofKey(running);
    const { journal, clock, insist, offer } = this.#given;
    const { offers } = await insist(() => journal.end(begun, of, ending, clock.now() + RETELL_MS));
    offer(offers);
  }

  async #fencing<T>({ stop }: Running, write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (error instanceof ports.EngineFenced) stop.abort(error);
      throw error;
    }
  }

  async #lookUp(): Promise<void> {
    this.#isLookingUp = true;
    while (this.#doubtful.size > 0) {
      const works = [...this.#doubtful].flatMap((work) => {
        const running = this.#running.get(work);
        return running ? [{ work, number: running.known, running }] : [];
      });
      this.#doubtful.clear();
      try {
        const news = new Map((await this.#given.journal.news(works)).map((each) => [each.work, each]));
        for (const { work, running } of works) this.#learn(running, news.get(work));
      } catch {
        // Looked up again later: hints are lost, too.
        break;
      }
    }
    this.#isLookingUp = false;
  }

  #learn(running: Running, news: News | undefined): void {
    const { begun, stop, execution } = running;
    if (news?.fence !== begun.fence) return stop.abort(new ports.EngineFenced("The work was given to another execution"));
    for (const signal of news.signals) {
      if (signal.number <= running.known) continue;
      running.known = signal.number;
      execution?.tell(signal);
    }
    if (news.reason !== undefined) stop.abort(new ports.WorkCancelled(news.reason));
  }
}
