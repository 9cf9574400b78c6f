import type { Ending, Note, Rest } from "@portico/adapters/engine/journal";
import type { Offer } from "./work-row.ts";

/** Work as it is accepted. */
export interface AcceptedWork {
  readonly kind: string;
  readonly id: string;
  readonly key: string;
  /** JSON. */
  readonly input: string;
  readonly acceptedAt: number;
  /** Maximum work of its key that is queued or executes. */
  readonly keyLimit: number;
  /** The lease of the process that begins it in the same commit, if its key allows it. */
  readonly beginsAt: number | undefined;
}

/** A work that begins to execute. */
export interface Begun {
  readonly work: number;
  readonly id: string;
  readonly kind: string;
  readonly key: string;
  readonly attempt: number;
  readonly fence: number;
  /** The reason of its cancellation. */
  readonly reason: string | undefined;
  /** Its process was lost while it executed. */
  readonly isInterrupted: boolean;
  readonly notes: readonly Note[];
}

/** The execution that writes. */
export interface Holder {
  readonly id: string;
  readonly fence: number;
}

/** Where a hint about a work must go. */
export interface Hint {
  readonly work: number;
  readonly owner: number;
}

/** The effect of a change, besides the stored rows. */
export interface Effect {
  /** Work that other processes may begin from now on. */
  readonly offers: readonly Offer[];
  /** The execution that must look into the journal. */
  readonly hint?: Hint | undefined;
}

/** The effect of accepting work. */
export interface Acceptance extends Effect {
  readonly begun?: Begun | undefined;
}

/** The effect of a signal or a cancellation. */
export interface Delivery extends Effect {
  readonly work: number;
  /** The first reason of its cancellation. */
  readonly reason?: string | undefined;
}

/** A change of one work. Its outcome is set when it is applied. */
export type WorkChange =
  | { readonly type: "accept"; readonly id: string; readonly work: AcceptedWork; outcome?: Acceptance }
  /** No outcome: its generation is outdated. */
  | {
      readonly type: "begin";
      readonly id: string;
      readonly generation: number;
      readonly lease: number;
      /** Whether work of its kind is closed after an interruption, so that it does not execute again. */
      readonly closes: boolean;
      outcome?: Begun | undefined;
    }
  /** No outcome for unknown or ended work. */
  | {
      readonly type: "signal";
      readonly id: string;
      readonly name: string;
      readonly payload: string;
      outcome?: Delivery | undefined;
    }
  | {
      readonly type: "cancel";
      readonly id: string;
      readonly of: KeyQueue;
      readonly reason: string;
      readonly at: number;
      outcome?: Delivery | undefined;
    }
  /** These throw EngineFenced if another execution has the work. */
  | { readonly type: "note"; readonly id: string; readonly fence: number; readonly note: Note }
  | { readonly type: "park"; readonly id: string; readonly fence: number; readonly rest: Rest; outcome?: Effect }
  | EndChange
  /** Queue work that executed in a lost process, or the work of one lost execution. */
  | { readonly type: "lose"; readonly id: string; readonly lease: number; readonly fence?: number | undefined; outcome?: Effect }
  /** Queue parked or unclosed work. `interrupts`: as if its process had been lost. */
  | { readonly type: "return"; readonly id: string; readonly at: number; readonly interrupts: boolean; outcome?: Effect }
  /** Throws RecordConflict if the execution does not have the work. */
  | { readonly type: "held"; readonly id: string; readonly fence: number }
  /** The same, and the work ends. */
  | { readonly type: "ended"; readonly id: string; readonly end: EndChange };

/** The end of a work. */
export interface EndChange {
  readonly type: "end";
  readonly id: string;
  readonly fence: number;
  readonly of: KeyQueue;
  readonly ending: Ending;
  /** When the end of `unclosed` work is told again. */
  readonly retryAt: number;
  outcome?: Effect;
}

/** The works of one kind and key. */
export interface KeyQueue {
  readonly kind: string;
  readonly key: string;
  readonly keyLimit: number;
}

/** The key whose works a change can queue. */
export function queueOf(change: WorkChange): KeyQueue | undefined {
  if (change.type === "accept") return change.work;
  if (change.type === "ended") return change.end.of;
  return change.type === "end" || change.type === "cancel" ? change.of : undefined;
}
