import { ports } from "@portico/core";
import type { Ending, Note, Rest } from "@portico/adapters/engine/journal";
import { DuplicateWork } from "./duplicate-work.ts";
import type { Acceptance, Begun, Delivery, Effect, Hint, KeyQueue, WorkChange } from "./work-change.ts";
import { NEW_WORK, type Offer, type WorkNote, type WorkRow } from "./work-row.ts";

/** The collection of the condition that an execution has its work. It has no records. */
export const HELD = "_engine_held";
/** The same, and the batch ends the work. */
export const ENDED = "_engine_ended";

/** The rows that changes need, read under their locks. */
export interface SheetData {
  readonly rows: readonly WorkRow[];
  /** The works of each key that have not ended, in order. As many as can matter. */
  readonly queues: ReadonlyMap<string, readonly string[]>;
  /** The leases that are still valid. They stay valid until the commit. */
  readonly living: ReadonlySet<number>;
  /** For accepted work, and for signals. Each is higher than all numbers of earlier commits. */
  readonly numbers: readonly number[];
  /** Of works that begin: all. Of works that are parked: signals. */
  readonly notes: readonly WorkNote[];
}

type Undo = (() => void)[];
type ChangeOf<Type extends WorkChange["type"]> = Extract<WorkChange, { type: Type }>;

/** Applies changes to rows in memory, in order. All changes of a work's state are decided here. */
export class WorkSheet {
  readonly #rows = new Map<string, WorkRow>();
  readonly #before: ReadonlyMap<string, WorkRow>;
  readonly #queues = new Map<string, string[]>();
  readonly #living: ReadonlySet<number>;
  readonly #numbers: Iterator<number>;
  readonly #known: readonly WorkNote[];
  readonly #notes: WorkNote[] = [];
  readonly #forgotten: number[] = [];

  constructor({ rows, queues, living, numbers, notes }: SheetData) {
    this.#before = new Map(rows.map((row) => [row.id, row]));
    for (const row of rows) this.#rows.set(row.id, row);
    for (const [name, ids] of queues) this.#queues.set(name, [...ids]);
    this.#living = living;
    this.#numbers = numbers.values();
    this.#known = notes;
  }

  /** Works that did not exist before. */
  get made(): readonly WorkRow[] {
    return [...this.#rows.values()].filter(({ id }) => !this.#before.has(id));
  }

  get changed(): readonly WorkRow[] {
    return [...this.#rows.values()].filter((row) => this.#before.has(row.id) && this.#before.get(row.id) !== row);
  }

  /** Notes to store: the last of each kind, name and number. */
  get notes(): readonly WorkNote[] {
    const gone = new Set(this.#forgotten);
    const kept = this.#notes.filter(({ work }) => !gone.has(work));
    return [...new Map(kept.map((note) => [`${note.work} ${note.kind} ${note.number} ${note.name}`, note])).values()];
  }

  /** Works whose notes are to be deleted. */
  get forgotten(): readonly number[] {
    return this.#forgotten;
  }

  /** Throws DuplicateWork, EngineFenced or RecordConflict. The caller then undoes what was pushed. */
  apply(change: WorkChange, undo: Undo): void {
    switch (change.type) {
      case "accept":
        return void (change.outcome = this.#accept(change, undo));
      case "begin":
        return void (change.outcome = this.#begin(change, undo));
      case "signal":
        return void (change.outcome = this.#signal(change, undo));
      case "cancel":
        return void (change.outcome = this.#cancel(change, undo));
      case "note":
        return this.#note({ work: this.#held(change).work, ...change.note }, undo);
      case "park":
        return void (change.outcome = this.#park(this.#held(change), change.rest, undo));
      case "end":
        return void (change.outcome = this.#end(change, undo));
      case "lose":
        return void (change.outcome = this.#lose(change, undo));
      case "return":
        return void (change.outcome = this.#return(change, undo));
      case "held":
        if (!this.#has(change)) throw new ports.RecordConflict(HELD, change.id);
        return;
      case "ended":
        if (!this.#has(change.end)) throw new ports.RecordConflict(ENDED, change.id);
        return void (change.end.outcome = this.#end(change.end, undo));
    }
  }

  #accept({ work: given }: ChangeOf<"accept">, undo: Undo): Acceptance {
    if (this.#rows.has(given.id)) throw new DuplicateWork();
    const { kind, id, key, acceptedAt, keyLimit, beginsAt, input } = given;
    const queue = this.#queueOf(given);
    const mayBegin = this.#openOf(queue).length < keyLimit;
    const made: WorkRow = { work: this.#number(), id, kind, key, accepted: acceptedAt, ...NEW_WORK };
    this.#set(made, undo);
    queue.push(id);
    undo.push(() => queue.splice(queue.indexOf(id), 1));
    const note: WorkNote = { work: made.work, kind: "input", name: "", number: 0, state: "done", value: input };
    this.#note(note, undo);
    if (mayBegin && beginsAt !== undefined && this.#living.has(beginsAt)) {
      const row = { ...made, state: "executing", generation: 1, fence: 1, attempt: 1, owner: beginsAt } as const;
      return { offers: [], begun: toBegun(this.#set(row, undo), false, [note]) };
    }
    return { offers: mayBegin ? [this.#enqueue(made, undo)] : [] };
  }

  #begin({ id, generation, lease, closes }: ChangeOf<"begin">, undo: Undo): Begun | undefined {
    const row = this.#rows.get(id);
    if (row?.generation !== generation) return undefined;
    // The commit of this call took effect before, and its answer was lost.
    if (row.state === "executing" && row.owner === lease) return toBegun(row, row.lost, this.#notesOf(row.work));
    if (row.state !== "lined") return undefined;
    if (!this.#living.has(lease)) throw new ports.EngineFenced("The lease of this process is lost");
    // Telling an end is not an execution, and neither is continuing after a wait.
    const isNew = row.lost ? !closes : row.awaited === null;
    const begun = this.#set(
      {
        ...row,
        state: "executing",
        fence: row.fence + 1,
        attempt: row.attempt + Number(isNew),
        ...{ awaited: null, due: null, owner: lease },
      },
      undo,
    );
    return toBegun(begun, row.lost, this.#notesOf(row.work));
  }

  #signal({ id, name, payload }: ChangeOf<"signal">, undo: Undo): Delivery | undefined {
    const row = this.#open(id);
    if (!row) return undefined;
    const note: WorkNote = { work: row.work, kind: "signal", name, number: this.#number(), state: "done", value: payload };
    this.#note(note, undo);
    const { work } = row;
    if (row.state !== "parked" || !awaitedBy(row).includes(name)) return { work, offers: [], hint: hintOf(row) };
    return { work, offers: [this.#enqueue(row, undo)] };
  }

  #cancel({ id, reason: given, at, of }: ChangeOf<"cancel">, undo: Undo): Delivery | undefined {
    const row = this.#open(id);
    if (!row) return undefined;
    const { work } = row;
    const reason = row.reason ?? given;
    const cancelled = row.reason === null ? this.#set({ ...row, reason }, undo) : row;
    if (row.state === "parked") return { work, reason, offers: [this.#enqueue(cancelled, undo)] };
    const neverBegan = row.state !== "executing" && row.attempt === 0;
    if (!neverBegan) return { work, reason, offers: [], hint: hintOf(row) };
    return { work, reason, offers: this.#finish(cancelled, { state: "interrupted", endedAt: at }, undefined, of, undo) };
  }

  #park(row: WorkRow, { until, awaited, known, order }: Rest, undo: Undo): Effect {
    if (order) this.#note({ work: row.work, ...order }, undo);
    const isAwaited = ({ kind, name, number }: Note) => kind === "signal" && number > known && awaited.includes(name);
    const resting = { ...row, awaited: JSON.stringify(awaited), owner: null, lost: false };
    if (row.reason !== null || this.#notesOf(row.work).some(isAwaited)) return { offers: [this.#enqueue(resting, undo)] };
    this.#set({ ...resting, state: "parked", due: until ?? null }, undo);
    return { offers: [] };
  }

  #end(change: ChangeOf<"end">, undo: Undo): Effect {
    const { ending, of, retryAt } = change;
    return { offers: this.#finish(this.#held(change), ending, retryAt, of, undo) };
  }

  #lose({ id, lease, fence }: ChangeOf<"lose">, undo: Undo): Effect {
    const row = this.#rows.get(id);
    if (row?.state !== "executing" || row.owner !== lease || row.fence !== (fence ?? row.fence)) return { offers: [] };
    return { offers: [this.#enqueue({ ...row, lost: true }, undo)] };
  }

  #return({ id, at, interrupts }: ChangeOf<"return">, undo: Undo): Effect {
    const row = this.#rows.get(id);
    const isResting = row?.state === "parked" || row?.state === "unclosed";
    if (!isResting || (!interrupts && (row.due === null || row.due > at))) return { offers: [] };
    return { offers: [this.#enqueue({ ...row, lost: interrupts || row.state === "unclosed" }, undo)] };
  }

  /** Cancelled work ends as cancelled, whatever its result. The first waiting works of its key are queued. */
  #finish(row: WorkRow, ending: Ending, retryAt: number | undefined, of: KeyQueue, undo: Undo): readonly Offer[] {
    const { state, endedAt, output, error } = ending;
    // The input is needed once more.
    if (state !== "unclosed") {
      this.#forgotten.push(row.work);
      undo.push(() => this.#forgotten.splice(this.#forgotten.indexOf(row.work), 1));
    }
    const isCancelled = row.reason !== null && state !== "unclosed";
    this.#set(
      {
        ...row,
        state: isCancelled ? "cancelled" : state,
        ended: row.ended ?? endedAt,
        output: isCancelled ? null : (output ?? null),
        error: row.reason ?? error ?? null,
        due: state === "unclosed" ? (retryAt ?? null) : null,
        ...{ awaited: null, owner: null, lost: false },
      },
      undo,
    );
    const first = this.#openOf(this.#queueOf(of)).slice(0, of.keyLimit);
    return first.filter((each) => each.state === "queued").map((each) => this.#enqueue(each, undo));
  }

  /** The work may begin, in whichever process takes it first. */
  #enqueue(row: WorkRow, undo: Undo): Offer {
    const { kind, id, work } = row;
    const generation = row.generation + 1;
    this.#set({ ...row, state: "lined", generation, due: null, owner: null }, undo);
    return { kind, id, work, generation, isBack: row.attempt > 0 };
  }

  #open(id: string): WorkRow | undefined {
    const row = this.#rows.get(id);
    return row?.ended === null ? row : undefined;
  }

  #has({ id, fence }: { readonly id: string; readonly fence: number }): boolean {
    const row = this.#rows.get(id);
    return row?.state === "executing" && row.fence === fence;
  }

  /** The work of an execution. Throws EngineFenced if another one has it. */
  #held(holder: { readonly id: string; readonly fence: number }): WorkRow {
    if (!this.#has(holder)) throw new ports.EngineFenced("The work was given to another execution");
    return this.#rows.get(holder.id)!;
  }

  #queueOf({ kind, key }: Pick<KeyQueue, "kind" | "key">): string[] {
    const name = queueName(kind, key);
    const found = this.#queues.get(name) ?? [];
    this.#queues.set(name, found);
    return found;
  }

  #openOf(queue: readonly string[]): readonly WorkRow[] {
    return queue.flatMap((id) => this.#open(id) ?? []);
  }

  #notesOf(work: number): readonly Note[] {
    return [...this.#known, ...this.#notes].filter((note) => note.work === work);
  }

  #number(): number {
    const { value, done } = this.#numbers.next();
    if (done) throw new Error("A change of the journal needs more numbers than were reserved");
    return value;
  }

  #set(row: WorkRow, undo: Undo): WorkRow {
    const before = this.#rows.get(row.id);
    this.#rows.set(row.id, row);
    undo.push(() => void (before ? this.#rows.set(row.id, before) : this.#rows.delete(row.id)));
    return row;
  }

  #note(note: WorkNote, undo: Undo): void {
    this.#notes.push(note);
    undo.push(() => void this.#notes.splice(this.#notes.indexOf(note), 1));
  }
}

/** One name for a kind and a key. */
export function queueName(kind: string, key: string): string {
  return JSON.stringify([kind, key]);
}

function toBegun(
  { work, id, kind, key, attempt, fence, reason }: WorkRow,
  isInterrupted: boolean,
  notes: readonly Note[],
): Begun {
  return { work, id, kind, key, attempt, fence, reason: reason ?? undefined, isInterrupted, notes };
}

function hintOf({ work, state, owner }: WorkRow): Hint | undefined {
  return state === "executing" && owner !== null ? { work, owner } : undefined;
}

function awaitedBy({ awaited }: WorkRow): readonly string[] {
  return JSON.parse(awaited ?? "[]") as readonly string[];
}
