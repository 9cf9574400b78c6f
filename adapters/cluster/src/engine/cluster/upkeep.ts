import type { ports } from "@portico/core";
import { prepared } from "../../records/postgres/prepared.ts";
import type { PostgresStore } from "../../records/postgres/store.ts";
import type { ChoreRota } from "./chore-rota.ts";
import type { ClusterJournal } from "./cluster-journal.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { DueWatch } from "./due-watch.ts";
import type { WakeUps } from "@portico/adapters/engine/wake-ups";
import type { Executions } from "./executions.ts";
import type { Offer } from "./work-row.ts";

/** The dependencies of the upkeep. */
export interface UpkeepGiven {
  readonly store: Pick<PostgresStore, "schema" | "read">;
  readonly journal: ClusterJournal;
  readonly dispatcher: Dispatcher;
  readonly executions: Executions;
  readonly dueWatch: DueWatch;
  readonly rota: ChoreRota;
  readonly wakeUps: Pick<WakeUps, "run">;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  readonly keepEndedMs: number;
  /** The lease of this process; 0 without a lease. */
  lease(): number;
  /** Whether a work is about to begin here. */
  isBeginning(id: string): boolean;
  offer(offers: readonly Offer[]): void;
}

/** Pause between two rounds, and how long work is queued before the queue is checked for it. */
export const UPKEEP_MS = 3000;
/** Queued works that one round checks. */
const CHECKED = 20_000;

/**
 * Finds what was lost: hints, offers, and works that no execution has although the journal says so. In real time, because it is about
 * other processes and servers.
 */
export class Upkeep {
  readonly #given: UpkeepGiven;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> | undefined;
  #isStopped = false;

  constructor(given: UpkeepGiven) {
    this.#given = given;
  }

  begin(): void {
    // Processes that started together take turns.
    const pause = UPKEEP_MS * (0.8 + 0.4 * Math.random());
    this.#timer = setTimeout(() => {
      this.#round = this.#do().finally(() => this.#isStopped || this.begin());
    }, pause).unref();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#round;
  }

  async #do(): Promise<void> {
    const { executions, dueWatch, rota, wakeUps, log } = this.#given;
    // Timers do not notice that the clock was set, or that the machine slept.
    wakeUps.run();
    executions.hintAll();
    const tasks = [() => dueWatch.look(), () => rota.look(), () => this.#loseUnknown(), () => this.#sweep()];
    for (const task of tasks) {
      if (this.#isStopped) return;
      // The journal or the queue is unavailable. Both say so elsewhere.
      await task().catch((error: unknown) => log.debug(`The engine's upkeep failed: ${String(error)}`));
    }
  }

  /** Works that began in a commit whose answer was lost. */
  async #loseUnknown(): Promise<void> {
    const { journal, executions, lease, isBeginning, offer } = this.#given;
    const own = lease();
    if (own === 0) return;
    const owned = await journal.owned(own);
    const unknown = owned.filter(({ work, id }) => !executions.has(work) && !isBeginning(id));
    if (unknown.length > 0) offer(await journal.loseEach(own, unknown));
  }

  /** The chores that one process does for all processes. */
  async #sweep(): Promise<void> {
    const { journal, clock, keepEndedMs, offer } = this.#given;
    if (!(await this.#isTurn())) return;
    for (const lease of await journal.orphaned()) offer(await journal.lose(lease));
    await this.#offerAgain();
    while (!this.#isStopped && (await journal.prune(clock.now() - keepEndedMs)));
  }

  /** Works that wait, and that the common queue does not know of. */
  async #offerAgain(): Promise<void> {
    const { journal, dispatcher } = this.#given;
    const found: Offer[] = [];
    while (found.length < CHECKED && !this.#isStopped) {
      const page = await journal.waiting(UPKEEP_MS, found.at(-1)?.work ?? 0);
      if (page.length === 0) break;
      found.push(...page);
    }
    if (found.length > 0) await dispatcher.offer(await dispatcher.missing(found));
  }

  async #isTurn(): Promise<boolean> {
    const { store } = this.#given;
    const text = `UPDATE "${store.schema}"."_engine_sweep" SET last = now()
      WHERE last < now() - ${UPKEEP_MS * 0.8} * interval '1 millisecond' RETURNING one`;
    return (await store.read((client) => prepared(client, text, []))).length > 0;
  }
}
