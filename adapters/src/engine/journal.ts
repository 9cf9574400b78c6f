import type { ports } from "@portico/core";

/**
 * The storage of accepted work, so that a process can continue the work of another. It records who owns the work, which work may
 * begin, and the stored results of each work. It executes nothing. Writes take effect in the order of the calls and are durable
 * when their promise resolves. Every write rejects with EngineFenced when another process has taken over, and with
 * EngineUnavailable. A read throws EngineUnavailable.
 */
export interface Journal {
  /** Become the owner, unless the lease of another owner is still valid. Only the owner may call the other writes. */
  claim(lease: Lease): Promise<Claim>;
  renew(until: number): Promise<void>;
  /** Allow every process to claim at once. */
  release(): Promise<void>;
  /**
   * Take over work that was executing when its process ended. Work of `resume` kinds goes to the head of its queue. Work of
   * `close` kinds is returned, together with work whose closing failed before. Parked work stays parked, except if its kind is
   * now a `close` kind. Call it once, after claiming, with all kinds.
   */
  takeUp(kinds: readonly KindRule[]): Promise<readonly OpenWork[]>;
  /** Rejects with RecordConflict, and then nothing is written. */
  accept(work: NewWork, records: readonly ports.Write[]): Promise<Acceptance>;
  /** Undefined if the work is not `lined` any more. */
  begin(work: number): Promise<OpenWork | undefined>;
  /**
   * The work that `begin` would begin, without a write: a batch of records with `begun` begins it. Undefined if it is not `lined` any
   * more. Absent if the journal does not share the store of the records.
   */
  readonly next?: ((work: number) => OpenWork | undefined) | undefined;
  note(work: number, note: Note): Promise<void>;
  /**
   * Release executing work until its wait ends. Then it is lined up again, after other returned work and before all work that
   * has not begun. If it was cancelled, or an awaited signal has arrived that its execution has not seen, it is lined up at once: the
   * answer has its place.
   */
  park(work: number, rest: Rest): Promise<readonly Place[]>;
  /** Line up parked work that is due at `now`, the earliest first, up to `limit`. */
  bringBack(now: number, limit: number): Promise<readonly Place[]>;
  /** Store a signal, and line up the parked work that waits for it. Undefined for unknown or ended work. */
  signal(id: string, name: string, payload: string): Promise<Signal | undefined>;
  /** Mark open work as cancelled. Work that never began ends, and parked work is lined up. */
  cancel(id: string, reason: string, now: number): Promise<Cancellation>;
  /**
   * Records the end of the work, and returns the next work of its key. Deletes its stored results. Cancelled work ends as
   * cancelled, whatever its result. An `unclosed` end stays `unclosed` and keeps the stored results: the next start reads the input,
   * and ends the work again.
   */
  end(work: number, ending: Ending): Promise<readonly Place[]>;
  /** Delete up to `limit` works that ended before `before`, except `unclosed` ones. Returns their number. */
  prune(before: number, limit: number): Promise<number>;
  find(id: string): WorkRecord | undefined;
  /** When the earliest parked work is due. Undefined without such work. */
  nextDue(): number | undefined;
  /** Places of a kind's queue, up to `limit` after `after`, in order. */
  line(kind: string, after: number, limit: number): readonly Place[];
  notes(work: number): readonly Note[];
  /**
   * A condition for batches of records: this process owns the work, and it executes. A journal in another store than the records
   * can only ask `isLost`.
   */
  held(work: number, isLost: () => boolean): ports.Write;
  /** The same condition, for work that `next` returned, too. The batch begins it. */
  begun(work: number, isLost: () => boolean): ports.Write;
  /**
   * The same condition. If the journal shares the store of the records, the batch also ends the work as completed at this time, without a
   * result.
   */
  ended(work: number, endedAt: number, isLost: () => boolean): ports.Write;
  /** The next works of the key of a work that a batch with `ended` has ended. Undefined if no batch has: then `end` it. */
  nextAfter(work: number): readonly Place[] | undefined;
}

/** The claim of a process to the work of a journal, until a time (milliseconds since 1970). */
export interface Lease {
  /** Processes of one owner take over the work from each other at once. */
  readonly owner: string;
  readonly now: number;
  readonly until: number;
}

/** Whether this process now owns the work. Otherwise, until when another process owns it. */
export type Claim = { readonly owned: true } | { readonly owned: false; readonly until: number };

/** The rules of one kind of work that a journal needs. */
export interface KindRule {
  readonly kind: string;
  readonly onInterrupted: "resume" | "close";
  /** Maximum works of one key that are lined up, executing or parked. Later works of the key are `queued` behind them. */
  readonly keyLimit: number;
}

/**
 * `queued` behind others of its key, `lined` up to begin or to continue, `executing`, `parked` until an event. Work of all other
 * states has ended. `unclosed` is interrupted work whose end is not reported yet.
 */
export type WorkState =
  | "queued"
  | "lined"
  | "executing"
  | "parked"
  | "unclosed"
  | "completed"
  | "failed"
  | "cancelled"
  | "interrupted";

/** Work as it is accepted. */
export interface NewWork {
  readonly kind: string;
  readonly id: string;
  readonly key: string;
  /** JSON. */
  readonly input: string;
  readonly acceptedAt: number;
  /**
   * Begin it in the same commit, if its key allows it. The process that accepts it executes it, and it needs no place in the
   * queue.
   */
  readonly atOnce: boolean;
}

/** The result of accepting work. */
export interface Acceptance {
  readonly duplicate: boolean;
  readonly places: readonly Place[];
  /** Set if it began. */
  readonly begun?: OpenWork | undefined;
}

/** The place of a work in the queue of its kind. */
export interface Place {
  readonly kind: string;
  readonly work: number;
  readonly place: number;
}

/** Work that executes, or whose interrupted execution must be closed. */
export interface OpenWork {
  /** The journal's own number. Later work has a higher one. */
  readonly work: number;
  readonly id: string;
  readonly kind: string;
  readonly attempt: number;
  /** The reason of its cancellation. Undefined if it was not cancelled. */
  readonly reason: string | undefined;
}

/** The state of a work, for callers. */
export interface WorkRecord {
  readonly kind: string;
  readonly state: WorkState;
  readonly attempt: number;
  readonly acceptedAt: number;
  readonly endedAt: number | undefined;
  readonly output: string | undefined;
  readonly error: string | undefined;
}

/** `order` is the order in which requests of the work were answered before it was parked, if there were several at once. */
export type NoteKind = "input" | "step" | "sleep" | "wait" | "signal" | "order";

/** One stored result of a work. A note with the same kind, name and number replaces it. */
export interface Note {
  readonly kind: NoteKind;
  readonly name: string;
  /** Waits with the same name are counted from 0. Signals have growing numbers, whatever their names. 0 for all others. */
  readonly number: number;
  /**
   * `begun`: a step that has begun, a wait with a time limit, or a sleep, which keeps this state. Waits and sleeps store their end
   * as the value. `threw`: only for steps.
   */
  readonly state: "begun" | "done" | "threw";
  /** JSON. Undefined without a value. */
  readonly value: string | undefined;
}

/** A stored signal, and the work that it lines up. */
export interface Signal {
  readonly work: number;
  readonly note: Note;
  readonly places: readonly Place[];
}

/** The state of an execution that only waits. */
export interface Rest {
  /** When its first sleep or wait ends. Undefined if none has a time limit. */
  readonly until: number | undefined;
  /** The signals that it waits for. */
  readonly awaited: readonly string[];
  /** The highest number of a signal that it received. */
  readonly known: number;
  /** Undefined if it never had several requests at once. */
  readonly order: Note | undefined;
}

/** The effect of a cancellation. */
export interface Cancellation {
  /** Undefined if no open work has this ID. */
  readonly work: number | undefined;
  readonly places: readonly Place[];
}

/** How an execution ended. */
export interface Ending {
  readonly state: "unclosed" | "completed" | "failed" | "interrupted";
  readonly endedAt: number;
  readonly output?: string | undefined;
  readonly error?: string | undefined;
}
