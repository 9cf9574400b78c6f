import { findStoreMismatch, ports } from "@portico/core";
import { prepared } from "../../records/postgres/prepared.ts";
import type { PostgresStore } from "../../records/postgres/store.ts";
import type { Ending, Note, Rest, WorkState } from "@portico/adapters/engine/journal";
import { DuplicateWork } from "./duplicate-work.ts";
import { makeTables } from "./tables.ts";
import type {
  AcceptedWork,
  Acceptance,
  Begun,
  Delivery,
  Effect,
  EndChange,
  Holder,
  KeyQueue,
  WorkChange,
} from "./work-change.ts";
import { type Offer, toWorkNote, type WorkNote } from "./work-row.ts";
import { createWorkRows } from "./work-rows.ts";
import { ENDED, HELD } from "./work-sheet.ts";

/** A work as callers see it. */
export interface FoundWork {
  readonly kind: string;
  readonly key: string;
  readonly state: WorkState;
  readonly attempt: number;
  readonly acceptedAt: number;
  readonly endedAt: number | undefined;
  readonly output: string | undefined;
  readonly error: string | undefined;
  /** The process that executes it. */
  readonly process: string | undefined;
}

/** The changes of an executing work by other processes. */
export interface News {
  readonly work: number;
  /** Undefined if no execution has the work. */
  readonly fence: number | undefined;
  readonly reason: string | undefined;
  /** Signals after the last known one, in order. */
  readonly signals: readonly Note[];
}

/** Works of a kind that wait for a seat in any process. */
export interface Backlog {
  readonly kind: string;
  readonly works: number;
  readonly seconds: number;
}

/** An executing work, and the highest number of its signals that is known. */
export interface Known {
  readonly work: number;
  readonly number: number;
}

/**
 * The journal that all processes share, in the schema of the records. Writes of one event-loop turn share a commit, also with
 * records. Writes and reads reject with EngineUnavailable. Writes of an execution reject with EngineFenced if another one has the
 * work.
 */
export type ClusterJournal = Awaited<ReturnType<typeof openClusterJournal>>;

/** Works that one statement reads. Limits the duration of a transaction. */
const PAGE = 200;
/** Waiting works of one kind that are counted. Counting reads each of them. */
const COUNTED = 10_000;

/** Open the journal, and create its tables. Throws EngineUnavailable. */
export async function openClusterJournal(store: PostgresStore) {
  const { schema } = store;
  await makeTables(store).catch(rejectTranslated);
  const part = createWorkRows(schema);
  /** By the ID of the write: ends that batches of records may bring. */
  const ends = new Map<string, EndChange>();
  store.addCondition(ENDED, ({ id }) => {
    const end = ends.get(id);
    if (!end) throw new ports.RecordConflict(ENDED, id);
    return { part, changes: [{ type: "ended", id: end.id, end }] };
  });
  store.addCondition(HELD, ({ id, expected }) => ({ part, changes: [{ type: "held", id, fence: Number(expected) }] }));
  const table = (name: string) => `"${schema}"."_engine_${name}"`;

  const write = async <C extends WorkChange>(change: C, records: readonly ports.Write[] = []): Promise<C> => {
    const parts = records.length > 0 ? store.recordChanges(records) : [];
    await store.change([{ part, changes: [change] }, ...parts]).catch(rejectTranslated);
    return change;
  };
  const read = async <Row extends object>(text: string, values: readonly unknown[]): Promise<readonly Row[]> =>
    store.read((client) => prepared<Row>(client, text, values)).catch(rejectTranslated);
  const none: Effect = { offers: [] };
  /** Put each of some works into the queue. */
  const queueEach = async <Found>(
    found: readonly Found[],
    changeOf: (each: Found) => Extract<WorkChange, { type: "lose" | "return" }>,
  ): Promise<readonly Offer[]> => {
    const changes = await Promise.all(found.map((each) => write(changeOf(each))));
    return changes.flatMap(({ outcome = none }) => outcome.offers);
  };

  return {
    /** Undefined if the ID is known; its records are not written then. Rejects with RecordConflict. */
    async accept(work: AcceptedWork, records: readonly ports.Write[]): Promise<Acceptance | undefined> {
      const change: WorkChange & { type: "accept" } = { type: "accept", id: work.id, work };
      try {
        return (await write(change, records)).outcome;
      } catch (error) {
        if (error instanceof DuplicateWork) return undefined;
        throw error;
      }
    },
    /** Undefined if the offer is outdated. Rejects with EngineFenced if the lease is lost. */
    async begin({ id, generation }: Offer, lease: number, closes: boolean): Promise<Begun | undefined> {
      return (await write<WorkChange & { type: "begin" }>({ type: "begin", id, generation, lease, closes })).outcome;
    },
    async note({ id, fence }: Holder, note: Note): Promise<void> {
      await write({ type: "note", id, fence, note });
    },
    async park({ id, fence }: Holder, rest: Rest): Promise<Effect> {
      return (await write<WorkChange & { type: "park" }>({ type: "park", id, fence, rest })).outcome ?? none;
    },
    async end({ id, fence }: Holder, of: KeyQueue, ending: Ending, retryAt: number): Promise<Effect> {
      return (await write<WorkChange & { type: "end" }>({ type: "end", id, fence, of, ending, retryAt })).outcome ?? none;
    },
    /** Undefined for unknown or ended work. */
    async signal(id: string, name: string, payload: string): Promise<Delivery | undefined> {
      return (await write<WorkChange & { type: "signal" }>({ type: "signal", id, name, payload })).outcome;
    },
    /** Undefined for unknown or ended work. */
    async cancel(id: string, of: KeyQueue, reason: string, at: number): Promise<Delivery | undefined> {
      return (await write<WorkChange & { type: "cancel" }>({ type: "cancel", id, of, reason, at })).outcome;
    },

    /** Queue the works of a lost process. They are marked as interrupted. */
    async lose(lease: number): Promise<readonly Offer[]> {
      const rows = await read<{ id: string }>(`SELECT id FROM ${table("work")} WHERE owner = $1 ORDER BY work`, [lease]);
      return queueEach(rows, ({ id }) => ({ type: "lose", id, lease }));
    },
    /** The same for executions of a living process that it does not know of. */
    loseEach(lease: number, holders: readonly Holder[]): Promise<readonly Offer[]> {
      return queueEach(holders, ({ id, fence }) => ({ type: "lose", id, lease, fence }));
    },
    /** Queue parked works that are due, and unclosed ones whose end must be told again. Up to a page of them. */
    async bringBack(now: number): Promise<readonly Offer[]> {
      const text = `SELECT id FROM ${table("work")} WHERE due <= $1 ORDER BY due LIMIT ${PAGE}`;
      const rows = await read<{ id: string }>(text, [now]);
      return queueEach(rows, ({ id }) => ({ type: "return", id, at: now, interrupts: false }));
    },
    /**
     * Queues, as interrupted, the works that a process finds when it starts: unclosed works, and parked works of kinds that now are closed.
     */
    async interrupt(kinds: readonly string[]): Promise<readonly Offer[]> {
      const rows = await read<{ id: string }>(
        `SELECT id FROM ${table("work")} WHERE kind = ANY($1) AND state = 'unclosed' AND ended IS NOT NULL
         UNION ALL SELECT id FROM ${table("work")} WHERE kind = ANY($1) AND state = 'parked' AND ended IS NULL`,
        [kinds],
      );
      return queueEach(rows, ({ id }) => ({ type: "return", id, at: 0, interrupts: true }));
    },
    /** When the earliest work is due. Undefined without such work. */
    async nextDue(): Promise<number | undefined> {
      const [row] = await read<{ due: number | null }>(`SELECT min(due) AS due FROM ${table("work")} WHERE due IS NOT NULL`, []);
      return row?.due ?? undefined;
    },
    /** Of each kind: how many works may begin and have not, counted up to a limit, and the seconds for which the first one has waited. */
    async backlog(kinds: readonly string[]): Promise<readonly Backlog[]> {
      const lined = `FROM ${table("work")} WHERE state = 'lined' AND kind = given.kind`;
      return read<Backlog>(
        `SELECT given.kind, (SELECT count(*)::int FROM (SELECT 1 ${lined} LIMIT ${COUNTED}) AS counted) AS works,
           coalesce((SELECT greatest(0, extract(epoch FROM now() - min(queued))) ${lined}), 0)::double precision AS seconds
         FROM unnest($1::text[]) AS given (kind)`,
        [kinds],
      );
    },
    /** Works that have been queued for some time, in pages: up to 1,000 after `after`, in the order of the journal's numbers. */
    async waiting(forMs: number, after: number): Promise<readonly Offer[]> {
      const rows = await read<{ kind: string; id: string; work: string; generation: number; attempt: number }>(
        `SELECT kind, id, work, generation, attempt FROM ${table("work")}
         WHERE state = 'lined' AND queued < now() - $1 * interval '1 millisecond' AND work > $2
         ORDER BY work LIMIT 1000`,
        [forMs, after],
      );
      return rows.map(({ attempt, ...row }) => ({ ...row, work: Number(row.work), isBack: attempt > 0 }));
    },
    /** Leases of lost processes that still own works. */
    async orphaned(): Promise<readonly number[]> {
      const rows = await read<{ owner: string }>(
        `SELECT DISTINCT owner FROM ${table("work")}
         WHERE owner IS NOT NULL AND owner NOT IN (SELECT lease FROM ${table("processes")})`,
        [],
      );
      return rows.map(({ owner }) => Number(owner));
    },
    /** The executions that a process has, as the journal knows them. */
    async owned(lease: number): Promise<readonly (Holder & { readonly work: number })[]> {
      const text = `SELECT work, id, fence FROM ${table("work")} WHERE owner = $1`;
      const rows = await read<{ work: string; id: string; fence: number }>(text, [lease]);
      return rows.map(({ work, id, fence }) => ({ work: Number(work), id, fence }));
    },
    /** The changes of executing works by other processes. Removed works are missing. */
    async news(known: readonly Known[]): Promise<readonly News[]> {
      const works = known.map(({ work }) => work);
      const states = await read<{ work: string; fence: number; state: WorkState; reason: string | null }>(
        `SELECT work, fence, state, reason FROM ${table("work")} WHERE work = ANY($1)`,
        [works],
      );
      const notes = await read<Record<keyof WorkNote, unknown>>(
        `SELECT work, kind, name, number, state, value FROM unnest($1::bigint[], $2::bigint[]) AS known (of, last)
         JOIN ${table("notes")} ON work = known.of AND kind = 'signal' AND number > known.last ORDER BY number`,
        [works, known.map(({ number }) => number)],
      );
      const signals = Map.groupBy(notes.map(toWorkNote), ({ work }) => work);
      return states.map(({ work, fence, state, reason }) => ({
        work: Number(work),
        fence: state === "executing" ? fence : undefined,
        reason: reason ?? undefined,
        signals: signals.get(Number(work)) ?? [],
      }));
    },
    async find(id: string): Promise<FoundWork | undefined> {
      const [row] = await read<Record<string, any>>(
        `SELECT kind, key, state, attempt, accepted, ended, output, error, process
         FROM ${table("work")} LEFT JOIN ${table("processes")} ON lease = owner AND state = 'executing' WHERE id = $1`,
        [id],
      );
      if (!row) return undefined;
      const { kind, key, state, attempt, accepted, ended, output, error, process } = row;
      return {
        ...{ kind, key, state, attempt },
        acceptedAt: accepted,
        ...{ endedAt: ended ?? undefined, output: output ?? undefined, error: error ?? undefined, process: process ?? undefined },
      };
    },
    /** A write with the condition `held`, with which a batch of records ends the work. `forget` it when the execution has ended. */
    ended({ id, fence }: Holder, of: KeyQueue, ending: Ending) {
      const name = `${id} ${fence}`;
      const end: EndChange = { type: "end", id, fence, of, ending, retryAt: 0 };
      ends.set(name, end);
      const write: ports.Write = { collection: ENDED, id: name, value: undefined, expected: undefined };
      return { write, effect: () => end.outcome ?? none, forget: () => void ends.delete(name) };
    },
    held: ({ id, fence }: Holder): ports.Write => ({ collection: HELD, id, value: undefined, expected: fence }),
    /** Delete a page of works that ended before `before`. Returns whether there may be more. */
    async prune(before: number): Promise<boolean> {
      const rows = await read<{ work: string }>(
        `DELETE FROM ${table("work")} WHERE work IN (
           SELECT work FROM ${table("work")} WHERE ended < $1 AND state NOT IN ('unclosed', 'lined', 'executing') ORDER BY ended LIMIT ${PAGE}
         ) RETURNING work`,
        [before],
      );
      return rows.length === PAGE;
    },
  };
}

/** Errors of the store are about records. Callers of the engine get errors of the engine. */
function rejectTranslated(error: unknown): never {
  if (!(error instanceof ports.RecordsUnavailable)) throw error;
  const mismatch = findStoreMismatch(error);
  throw new ports.EngineUnavailable(mismatch?.message ?? "The engine's journal cannot be used", { cause: error });
}
