import { findStoreTooNew, ports } from "@portico/core";
import type { SqliteStore } from "../../records/sqlite/store.ts";
import type { Ending, Journal, KindRule, Note, OpenWork, Place, WorkRecord, WorkState } from "../journal.ts";
import { prepareStatements } from "./statements.ts";
import { makeTables } from "./tables.ts";

/** The result of a task that finds, inside the transaction, that another process owns the work by now. */
const FENCED = Symbol("fenced");

/** Maximum signals of one ownership period, so that signals of the next period get higher numbers. */
const SIGNALS_PER_FENCE = 2 ** 32;
/** Where returned work starts in the queue: before all work that has not begun, after resumed work. */
const RETURNED = -(2 ** 50);
const RETURNED_END = RETURNED / 2;
/** The collection of the condition that this process executes a work. It has no records. */
const HELD = "_engine_held";
/** The same, and the batch begins the work if it is lined up. */
const BEGUN = "_engine_begun";
/** The same, and the batch ends the work. The ID contains the work and the time of its end. */
const ENDED = "_engine_ended";

/** A journal in an SQLite file, in the same commits as the records in that file. Throws EngineUnavailable. */
export function openSqliteJournal(store: SqliteStore): Journal {
  const sql = translated(() =>
    store.read(() => {
      makeTables(store.database);
      return prepareStatements(store.database);
    }),
  );
  let fence = -1;
  let lastWork = 0;
  let lastPlace = 0;
  let lastReturned = RETURNED;
  let lastSignal = 0;
  const keyLimits = new Map<string, number>();

  /** Within one transaction the owner cannot change, so it is checked once. */
  let asked = { transaction: -1, isOwner: false };
  const isOwner = (): boolean => {
    const transaction = store.transaction();
    if (asked.transaction !== transaction) asked = { transaction, isOwner: sql.owner.get()?.fence === fence };
    return asked.isOwner;
  };

  /** Write as the owner. The check is inside the transaction, because an earlier result may be outdated. */
  const write = async <T>(work: (writeRecords: () => void) => T, records?: readonly ports.Write[]): Promise<T> => {
    const result = await store
      .transact((writeRecords) => (isOwner() ? work(writeRecords) : FENCED), records)
      .catch(rejectTranslated);
    if (result === FENCED) throw new ports.EngineFenced("Another process has taken the work over");
    return result as T;
  };
  const read = <T>(work: () => T): T => translated(() => store.read(work));
  const firstOfKey = (kind: string, key: string, limit: number) =>
    sql.firstOfKey.all(kind, key, limit) as unknown as readonly { readonly work: number; readonly state: WorkState }[];

  /** Lines up the first works of a key, up to the key's limit of open works that have their turn. */
  const advance = (kind: string, key: string): readonly Place[] => {
    const queued = firstOfKey(kind, key, keyLimits.get(kind) ?? 1).filter((found) => found.state === "queued");
    return queued.map(({ work }) => {
      sql.enterLine.run(++lastPlace, work);
      return { kind, work, place: lastPlace };
    });
  };

  const comeBack = (work: number): Place => {
    const place = ++lastReturned;
    return { kind: String(sql.comeBack.get(place, work)?.kind), work, place };
  };

  const end = (work: number, { endedAt, state, output, error }: Ending): readonly Place[] => {
    const ended = sql.end.get(endedAt, state, output ?? null, error ?? null, work);
    if (!ended) return [];
    // The next start closes it, and reads its input.
    if (state !== "unclosed") sql.forgetNotes.run(work);
    return advance(String(ended.kind), String(ended.key));
  };

  /** The works that were queued by batches which ended their works. */
  const nextOf = new Map<number, readonly Place[]>();
  const isHeld = (work: number, expected: ports.Expected | undefined) =>
    expected === fence && isOwner() && sql.isExecuting.get(work) !== undefined;
  store.addCondition(HELD, (work, expected) => isHeld(Number(work), expected));
  store.addCondition(BEGUN, (id, expected) => {
    const work = Number(id);
    if (expected === fence && isOwner() && sql.begin.get(work) !== undefined) return "changed";
    // An earlier attempt may have begun it, and its answer was lost.
    return isHeld(work, expected);
  });
  store.addCondition(ENDED, (id, expected) => {
    const [work, endedAt] = id.split(" ").map(Number) as [number, number];
    if (!isHeld(work, expected)) return false;
    nextOf.set(work, end(work, { state: "completed", endedAt }));
    return "changed";
  });

  const takeUp = ({ kind, onInterrupted, keyLimit }: KindRule): readonly OpenWork[] => {
    keyLimits.set(kind, keyLimit);
    const { first } = sql.ends.get(RETURNED_END) as { first: number | null };
    const head = Math.min(first ?? 0, RETURNED) - 1;
    if (onInterrupted === "resume") {
      sql.resume.run(head, lastWork, kind);
      return [];
    }
    const interrupted = [...sql.interrupted.all(kind), ...sql.unclosed.all(kind)] as unknown as RawOpenWork[];
    for (const { work } of interrupted) sql.leaveLine.run(work);
    return interrupted.map(toOpenWork);
  };

  return {
    async claim({ owner, now, until }) {
      const claim = store.transact(() => {
        const present = sql.owner.get() as { owner: string; until: number };
        if (present.owner !== owner && present.until > now) return { owned: false, until: present.until } as const;
        const claimed = sql.claim.get(owner, until) as { fence: number };
        return { owned: true, fence: claimed.fence, last: sql.lastWork.get()?.last, ends: sql.ends.get(RETURNED_END) } as const;
      });
      const claimed = await claim.catch(rejectTranslated);
      if (!claimed.owned) return claimed;
      fence = claimed.fence;
      lastWork = Number(claimed.last ?? 0);
      lastPlace = Math.max(0, Number(claimed.ends?.last ?? 0));
      lastReturned = Math.max(RETURNED, Number(claimed.ends?.lastReturned ?? RETURNED));
      lastSignal = fence * SIGNALS_PER_FENCE;
      return { owned: true };
    },
    renew: (until) => write(() => void sql.renew.run(until)),
    release: () => write(() => void sql.renew.run(0)),
    takeUp: (kinds) => write(() => kinds.flatMap(takeUp)),
    accept: ({ kind, id, key, input, acceptedAt, atOnce }, records) =>
      write((writeRecords) => {
        const limit = keyLimits.get(kind) ?? 1;
        // Counting up to a limit is cheaper than listing.
        const mayBegin = !sql.hasMoreOpen.get(kind, key, limit - 1);
        const work = lastWork + 1;
        const begins = mayBegin && atOnce;
        const place = mayBegin && !begins ? lastPlace + 1 : null;
        const state = begins ? "executing" : mayBegin ? "lined" : "queued";
        const { changes } = sql.create.run(work, id, kind, key, state, place, begins ? 1 : 0, acceptedAt);
        if (changes === 0) return { duplicate: true, places: [] };
        sql.note.run(work, "input", "", 0, "done", input);
        writeRecords();
        lastWork = work;
        if (begins) return { duplicate: false, places: [], begun: { work, id, kind, attempt: 1, reason: undefined } };
        if (place === null) return { duplicate: false, places: [] };
        lastPlace = place;
        return { duplicate: false, places: [{ kind, work, place }] };
      }, records),
    begin: (work) =>
      write(() => {
        const begun = sql.begin.get(work) as unknown as RawOpenWork | undefined;
        return begun && toOpenWork(begun);
      }),
    next: (work) =>
      read(() => {
        const lined = sql.lined.get(work) as unknown as RawOpenWork | undefined;
        return lined && toOpenWork({ ...lined, attempt: lined.attempt + 1 });
      }),
    note: (work, { kind, name, number, state, value }) =>
      write(() => void sql.note.run(work, kind, name, number, state, value ?? null)),
    signal: (id, name, payload) =>
      write(() => {
        const open = sql.openById.get(id);
        if (!open) return undefined;
        const [work, number] = [Number(open.work), ++lastSignal];
        sql.note.run(work, "signal", name, number, "done", payload);
        const isAwaited = open.state === "parked" && (JSON.parse(String(open.awaited)) as string[]).includes(name);
        const note = { kind: "signal", name, number, state: "done", value: payload } as const;
        return { work, note, places: isAwaited ? [comeBack(work)] : [] };
      }),
    park: (work, { until, awaited, known, order }) =>
      write(() => {
        if (order) sql.note.run(work, order.kind, order.name, order.number, order.state, order.value ?? null);
        const { changes } = sql.park.run(work, until ?? null, JSON.stringify(awaited), known);
        return changes === 0 ? [comeBack(work)] : [];
      }),
    bringBack: (now, limit) => write(() => sql.due.all(now, limit).map(({ work }) => comeBack(Number(work)))),
    cancel: (id, reason, now) =>
      write(() => {
        const open = sql.openById.get(id);
        if (!open) return { work: undefined, places: [] };
        const work = Number(open.work);
        sql.askToCancel.run(reason, work);
        if (open.state === "parked") return { work, places: [comeBack(work)] };
        const neverBegun = open.state !== "executing" && open.attempt === 0;
        return { work, places: neverBegun ? end(work, { state: "interrupted", endedAt: now }) : [] };
      }),
    end(work, ending) {
      // Of a batch that would have ended it, and was not written.
      nextOf.delete(work);
      return write(() => end(work, ending));
    },
    async prune(before, limit) {
      // A read needs no lock and no sync.
      if (!read(() => sql.prunable.get(before))) return 0;
      return write(() => Number(sql.prune.run(before, limit).changes));
    },
    find: (id) => read(() => toRecord(sql.record.get(id))),
    nextDue: () => read(() => (sql.nextDue.get()?.due ?? undefined) as number | undefined),
    line: (kind, after, limit) => read(() => sql.line.all(kind, after, limit) as unknown as readonly Place[]),
    held: (work) => ({ collection: HELD, id: String(work), value: undefined, expected: fence }),
    begun: (work) => ({ collection: BEGUN, id: String(work), value: undefined, expected: fence }),
    ended: (work, endedAt) => ({ collection: ENDED, id: `${work} ${endedAt}`, value: undefined, expected: fence }),
    nextAfter(work) {
      const next = nextOf.get(work);
      nextOf.delete(work);
      return next;
    },
    notes: (work) =>
      read(() => sql.notes.all(work).map((row) => ({ ...(row as unknown as Note), value: row.value?.toString() ?? undefined }))),
  };
}

interface RawOpenWork extends Omit<OpenWork, "reason"> {
  readonly reason: string | null;
}

function toOpenWork({ work, id, kind, attempt, reason }: RawOpenWork): OpenWork {
  return { work, id, kind, attempt, reason: reason ?? undefined };
}

function toRecord(row: Record<string, unknown> | undefined): WorkRecord | undefined {
  if (!row) return undefined;
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value ?? undefined])) as unknown as WorkRecord;
}

/** Errors of the store are about records. Callers of the engine get errors of the engine. */
function translate(error: unknown): unknown {
  if (!(error instanceof ports.RecordsUnavailable)) return error;
  const tooNew = findStoreTooNew(error);
  return new ports.EngineUnavailable(tooNew?.message ?? "The engine's journal cannot be used", { cause: error });
}

function translated<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw translate(error);
  }
}

function rejectTranslated(error: unknown): never {
  throw translate(error);
}
