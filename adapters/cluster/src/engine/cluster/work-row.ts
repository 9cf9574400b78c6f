import type { Note, WorkState } from "@portico/adapters/engine/journal";

/** One work, as all processes see it. */
export interface WorkRow {
  /** The journal's own number. Later work of a key has a higher one. */
  readonly work: number;
  readonly id: string;
  readonly kind: string;
  readonly key: string;
  readonly state: WorkState;
  /** Counts how often the work was queued. An offer of an earlier generation has no effect. */
  readonly generation: number;
  /** Counts how often the work began to execute. Only the execution with the present fence may write. */
  readonly fence: number;
  readonly attempt: number;
  readonly accepted: number;
  readonly ended: number | null;
  readonly output: string | null;
  readonly error: string | null;
  /** Why it was cancelled. */
  readonly reason: string | null;
  /** When parked work continues, and when the end of `unclosed` work is told again. */
  readonly due: number | null;
  /** JSON: the signals that parked work waits for, until it executes again. */
  readonly awaited: string | null;
  /** The lease of the process that executes it. */
  readonly owner: number | null;
  /** Whether it was executing when its process was lost, or must be told its end again. */
  readonly lost: boolean;
}

/** The columns of a work, in the order of `WorkRow`, with their types in SQL. */
export const WORK_COLUMNS: readonly (readonly [name: keyof WorkRow, type: string])[] = [
  ["work", "bigint"],
  ["id", "text"],
  ["kind", "text"],
  ["key", "text"],
  ["state", "text"],
  ["generation", "int"],
  ["fence", "int"],
  ["attempt", "int"],
  // Milliseconds may have fractions.
  ["accepted", "double precision"],
  ["ended", "double precision"],
  ["output", "text"],
  ["error", "text"],
  ["reason", "text"],
  ["due", "double precision"],
  ["awaited", "text"],
  ["owner", "bigint"],
  ["lost", "boolean"],
];

/** A work as it is queued for the first time. */
export const NEW_WORK = {
  state: "queued",
  ...{ generation: 0, fence: 0, attempt: 0 },
  ...{ ended: null, output: null, error: null, reason: null, due: null, awaited: null, owner: null, lost: false },
} as const satisfies Partial<WorkRow>;

/** A stored result of a work. */
export interface WorkNote extends Note {
  readonly work: number;
}

/** Work of a queue that any process may begin. */
export interface Offer {
  readonly kind: string;
  readonly id: string;
  readonly work: number;
  readonly generation: number;
  /** Whether it has executed before: it comes before work that has not. */
  readonly isBack: boolean;
}

/** A row as the driver returns it: `bigint` columns are texts. */
export function toWorkRow(raw: Readonly<Record<keyof WorkRow, unknown>>): WorkRow {
  return { ...(raw as WorkRow), work: Number(raw.work), owner: raw.owner === null ? null : Number(raw.owner) };
}

/** A note as the driver returns it. */
export function toWorkNote(raw: Readonly<Record<keyof WorkNote, unknown>>): WorkNote {
  const { work, kind, name, number, state, value } = raw as Omit<WorkNote, "value"> & { readonly value: string | null };
  return { work: Number(work), kind, name, number: Number(number), state, value: value ?? undefined };
}
