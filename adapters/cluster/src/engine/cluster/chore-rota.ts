import type { ports } from "@portico/core";
import { prepared } from "../../records/postgres/prepared.ts";
import type { PostgresStore } from "../../records/postgres/store.ts";
import { type Chore, type ChoreTable, runChore } from "@portico/adapters/engine/chores";
import type { WakeUps } from "@portico/adapters/engine/wake-ups";

/** The dependencies of a rota. */
export interface ChoreRotaGiven {
  readonly store: Pick<PostgresStore, "schema" | "read">;
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  readonly wakeUps: WakeUps;
  /** The lease of this process; 0 without a lease. */
  lease(): number;
}

interface ChoreRow {
  readonly name: string;
  readonly due: number;
}

/** A chore that is due later than its own times say, by more than clocks of processes differ, was released by a process whose clock was ahead. */
const CLOCKS_MS = 60_000;

/**
 * Shares chores among processes: each runs in the process that takes it first when it is due. A row per chore says when that is, and
 * which process runs it. It is free again when the lease of that process has ended.
 */
export class ChoreRota {
  readonly #given: ChoreRotaGiven;
  readonly #sql: ReturnType<typeof statements>;
  #chores: ChoreTable = new Map();
  readonly #running = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>();
  #isStopped = false;
  #cancel: (() => void) | undefined;

  constructor(given: ChoreRotaGiven) {
    this.#given = given;
    this.#sql = statements(given.store.schema);
  }

  /** Rejects with RecordsUnavailable. */
  async begin(chores: ChoreTable): Promise<void> {
    this.#chores = chores;
    if (chores.size === 0) return;
    const now = this.#given.clock.now();
    const all = [...chores.values()];
    await this.#ask(this.#sql.register, [
      all.map(({ name }) => name),
      all.map(({ firstMs }) => now + firstMs),
      all.map(({ everyMs }) => now + everyMs),
    ]);
    await this.look();
  }

  /** Run what is due and free. Rejects with RecordsUnavailable: call it again later. */
  async look(): Promise<void> {
    const free = [...this.#chores.keys()].filter((name) => !this.#running.has(name));
    const { clock, wakeUps } = this.#given;
    if (this.#isStopped || free.length === 0 || this.#given.lease() === 0) return;
    const latest = free.map((name) => {
      const { everyMs, firstMs } = this.#chores.get(name)!;
      return clock.now() + Math.max(everyMs, firstMs) + CLOCKS_MS;
    });
    const taken = await this.#ask<ChoreRow>(this.#sql.take, [free, clock.now(), this.#given.lease(), latest]);
    for (const { name } of taken) this.#run(this.#chores.get(name)!);
    const rows = await this.#ask<ChoreRow>(this.#sql.next, [free, clock.now()]);
    const next = rows.reduce((first, { due }) => Math.min(first, due), Number.POSITIVE_INFINITY);
    this.#cancel?.();
    if (Number.isFinite(next) && !this.#isStopped) this.#cancel = wakeUps.add(next, () => void this.look().catch(() => {}));
  }

  /** The lease is lost: other processes may run the chores. */
  abort(reason: Error): void {
    for (const { stop } of this.#running.values()) stop.abort(reason);
  }

  /** Run no more. Resolves when the running ones have ended. */
  async stop(reason: Error): Promise<void> {
    this.#isStopped = true;
    this.#cancel?.();
    this.abort(reason);
    await Promise.all([...this.#running.values()].map(({ ended }) => ended));
  }

  #run(chore: Chore): void {
    // Taken twice by two looks at once.
    if (this.#running.has(chore.name)) return;
    const stop = new AbortController();
    if (this.#isStopped) stop.abort();
    const ended = this.#perform(chore, stop.signal);
    this.#running.set(chore.name, { stop, ended });
  }

  async #perform(chore: Chore, signal: AbortSignal): Promise<void> {
    const { clock, log, lease } = this.#given;
    if (!signal.aborted) await runChore(chore, signal, log);
    // If this fails, the chore is due at once, and runs once more.
    await this.#ask(this.#sql.release, [chore.name, clock.now() + chore.everyMs, lease()]).catch(() => {});
    this.#running.delete(chore.name);
    await this.look().catch(() => {});
  }

  #ask<Row extends object>(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#given.store.read((client) => prepared<Row>(client, text, values));
  }
}

function statements(schema: string) {
  const [chores, processes] = [`"${schema}"."_engine_chores"`, `"${schema}"."_engine_processes"`];
  return {
    // A shorter interval takes effect at once.
    register: `
      INSERT INTO ${chores} AS old (name, due) SELECT name, first FROM unnest($1::text[], $2::double precision[], $3::double precision[]) AS new (name, first, next)
      ON CONFLICT (name) DO UPDATE SET due = least(old.due, (
        SELECT next FROM unnest($1::text[], $3::double precision[]) AS new (name, next) WHERE new.name = old.name
      ))`,
    take: `
      UPDATE ${chores} SET owner = $3 WHERE name = ANY($1) AND (due <= $2 OR due > (
          SELECT latest FROM unnest($1::text[], $4::double precision[]) AS own (own_name, latest) WHERE own_name = name
        ))
        AND (owner IS NULL OR owner = $3 OR NOT EXISTS (SELECT FROM ${processes} WHERE lease = owner))
        AND EXISTS (SELECT FROM ${processes} WHERE lease = $3)
      RETURNING name, due`,
    next: `SELECT name, due FROM ${chores} WHERE name = ANY($1) AND due > $2`,
    release: `UPDATE ${chores} SET owner = NULL, due = $2 WHERE name = $1 AND owner = $3`,
  };
}
