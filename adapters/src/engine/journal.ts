import type { ports } from "@portico/core";

/**
 * What accepted work is written into, so that a process can go on with what another left. It knows who owns the work, which of it may
 * begin, and what each piece of it remembers; it runs nothing. Whatever is written takes effect in the order of the calls and is durable
 * when its promise resolves. Every write rejects with EngineFenced when another process has taken the work over, and with
 * EngineUnavailable; a read throws EngineUnavailable.
 */
export interface Journal {
  /** Become the owner, unless another owner's lease still runs. Every other write is the owner's. */
  claim(lease: Lease): Promise<Claim>;
  renew(until: number): Promise<void>;
  /** Let anybody claim at once. */
  release(): Promise<void>;
  /**
   * Take up what was executing when its process ended: that of `resume` kinds goes to the head of its line; that of `close` kinds is
   * answered, together with what could not be closed before. Parked work stays as it is, but that of `close` kinds, which once were others.
   * To be called once, after claiming, with every kind there is.
   */
  takeUp(kinds: readonly KindRule[]): Promise<readonly OpenWork[]>;
  /** Rejects with RecordConflict, and then nothing is written. */
  accept(work: NewWork, records: readonly ports.Write[]): Promise<Acceptance>;
  /** Undefined when the work is not in line any more. */
  begin(work: number): Promise<OpenWork | undefined>;
  note(work: number, note: Note): Promise<void>;
  /**
   * Let go of executing work until what it waits for is there: then it comes into line again, behind others that came back and before all
   * that has not begun. Where it was cancelled, or a signal for it came that its execution did not know, it does so at once: its place.
   */
  park(work: number, rest: Rest): Promise<readonly Place[]>;
  /** Bring parked work back that is due at `now`, the earliest first, up to `limit`. */
  bringBack(now: number, limit: number): Promise<readonly Place[]>;
  /** Keep a signal, and bring back who is parked waiting for it; undefined for work that is unknown or ended. */
  signal(id: string, name: string, payload: string): Promise<Signal | undefined>;
  /** Mark open work as cancelled; what had never begun ends, and what is parked comes back. */
  cancel(id: string, reason: string, now: number): Promise<Cancellation>;
  /** Forgets what the work remembered, and answers what comes into line in its stead. Cancelled work ends as such, however it ended. */
  end(work: number, ending: Ending): Promise<readonly Place[]>;
  /** Forget up to `limit` works that ended before `before`. Answers how many it were. */
  prune(before: number, limit: number): Promise<number>;
  find(id: string): WorkRecord | undefined;
  /** When the first of all parked works is due, if any is. */
  nextDue(): number | undefined;
  /** Of a kind's line, up to `limit` places behind `after`, in order. */
  line(kind: string, after: number, limit: number): readonly Place[];
  notes(work: number): readonly Note[];
}

export interface Lease {
  /** Processes of one owner take the work from each other at once. */
  readonly owner: string;
  readonly now: number;
  readonly until: number;
}

export type Claim = { readonly owned: true } | { readonly owned: false; readonly until: number };

export interface KindRule {
  readonly kind: string;
  readonly onInterrupted: "resume" | "close";
  /** How many works of one key may be in line or executing. */
  readonly keyLimit: number;
}

/**
 * `queued` behind others of its key, `lined` up to begin or to go on, `executing`, `parked` until something comes; all others have ended.
 * `unclosed` is interrupted work whose end has yet to be told.
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

export interface NewWork {
  readonly kind: string;
  readonly id: string;
  readonly key: string;
  /** JSON. */
  readonly input: string;
  readonly acceptedAt: number;
  /** Begin it in the same commit, where its key lets it: it is executed by whoever accepts it, and needs no place in line. */
  readonly atOnce: boolean;
}

export interface Acceptance {
  readonly duplicate: boolean;
  readonly places: readonly Place[];
  /** Where it was begun. */
  readonly begun?: OpenWork | undefined;
}

/** Where a work stands in the line of its kind. */
export interface Place {
  readonly kind: string;
  readonly work: number;
  readonly place: number;
}

export interface OpenWork {
  /** The journal's own number for it; later work has a higher one. */
  readonly work: number;
  readonly id: string;
  readonly kind: string;
  readonly attempt: number;
  /** Why it is to be cancelled. */
  readonly reason: string | undefined;
}

export interface WorkRecord {
  readonly kind: string;
  readonly state: WorkState;
  readonly attempt: number;
  readonly acceptedAt: number;
  readonly endedAt: number | undefined;
  readonly output: string | undefined;
  readonly error: string | undefined;
}

/** `order` is that in which what the work asked for was answered before it was parked, where more than one of it was under way. */
export type NoteKind = "input" | "step" | "sleep" | "wait" | "signal" | "order";

/** One thing that a work remembers. The same kind, name and number again replaces it. */
export interface Note {
  readonly kind: NoteKind;
  readonly name: string;
  /** Tells waits of one name apart, and is higher for each signal of a work, whatever its name; 0 for all others. */
  readonly number: number;
  /** `begun` is a step that runs and a wait that is not over; `threw` is a step's. */
  readonly state: "begun" | "done" | "threw";
  /** JSON; undefined where there is nothing to keep. */
  readonly value: string | undefined;
}

export interface Signal {
  readonly work: number;
  readonly note: Note;
  readonly places: readonly Place[];
}

/** What an execution that only waits leaves behind. */
export interface Rest {
  /** When the first of its sleeps and waits is over; undefined where none has a time. */
  readonly until: number | undefined;
  /** The signals that it waits for. */
  readonly awaited: readonly string[];
  /** The highest number of a signal that it was told of. */
  readonly known: number;
  /** Undefined where nothing of it was under way beside anything else. */
  readonly order: Note | undefined;
}

export interface Cancellation {
  /** Undefined when there is no open work of this id. */
  readonly work: number | undefined;
  readonly places: readonly Place[];
}

export interface Ending {
  readonly state: "unclosed" | "completed" | "failed" | "interrupted";
  readonly endedAt: number;
  readonly output?: string | undefined;
  readonly error?: string | undefined;
}
