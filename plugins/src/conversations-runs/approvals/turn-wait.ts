import type { ports } from "@portico/core";

/** A turn that waits for decisions, from the commit in which it began to wait until the one in which it goes on or ends. By `turnId`. */
export interface TurnWait {
  readonly turnId: string;
  readonly runId: string;
  readonly sessionId: string;
  readonly clientRequestId?: string | undefined;
  /** Which work the turn is. */
  readonly of: "query" | "background";
  /** Counts the waits of the turn, from 1. */
  readonly number: number;
  /** The records of all its approvals, and of those that are not decided. */
  readonly approvals: readonly string[];
  readonly open: readonly string[];
  /** The turn is to go on: everything is decided, or it was stopped. */
  readonly isDue?: true | undefined;
  /** Milliseconds since 1970. */
  readonly dueAt?: number | undefined;
}

/** The collection of waiting turns. */
export const turnWaitsSpec: ports.CollectionSpec = {
  name: "turn-waits",
  indexes: { bySession: ["sessionId"], byDue: ["isDue", "dueAt"] },
};

/** The signal that the work of a waiting turn gets. */
export const wakeSignal = (number: number): string => `go-on-${number}`;
