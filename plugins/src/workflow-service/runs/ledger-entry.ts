import type { Hidden } from "../secrecy/secret-keeper.ts";

/** The entries of a run's history, in the order in which they happened. Secrets are masked. */
export type LedgerEntry = ParametersTaken | NodeStarted | NodeEnded | GateOpened | GateNotified | CallbackWaits;

/** The parameters of the run: its first entry. */
export interface ParametersTaken {
  readonly kind: "parameters";
  /** Empty, because it belongs to no node. */
  readonly nodeId: "";
  readonly parameters: unknown;
  /** Set if they are too large for history. */
  readonly isLeftOut?: true | undefined;
  /** Their secret parts, for a run that resumes this one. Not shown. */
  readonly hidden?: Hidden | undefined;
}

interface OfNode {
  /** With its place inside `map` and `loop`: `summarize[3].model`. */
  readonly nodeId: string;
}

export interface NodeStarted extends OfNode {
  readonly kind: "start";
  readonly type: string;
  readonly name?: string | undefined;
  /** ISO 8601. */
  readonly at: string;
}

export interface NodeEnded extends OfNode {
  readonly kind: "end";
  readonly type: string;
  readonly name?: string | undefined;
  readonly status: "completed" | "failed" | "skipped" | "cancelled";
  readonly inputs?: unknown;
  readonly outputs?: unknown;
  readonly error?: NodeError | undefined;
  readonly attempts: number;
  /** ISO 8601; absent for what never started. */
  readonly startedAt?: string | undefined;
  readonly completedAt?: string | undefined;
  readonly durationMs?: number | undefined;
  /** Set for results that a run which resumes this one can use. Absent if the result was too large. Not shown. */
  readonly kept?: KeptResult | undefined;
  /** The result was taken over from the run that this run resumes. */
  readonly reused?: true | undefined;
}

/** The parts of a result that history does not show. */
export interface KeptResult {
  readonly case?: string | undefined;
  /** The secret parts of the outputs, sealed for this run. */
  readonly hidden?: Hidden | undefined;
}

export interface GateOpened extends OfNode, Gate {
  readonly kind: "gate";
}

/** The notification of a gate was sent, or could not be delivered. */
export interface GateNotified extends OfNode, GateNotification {
  readonly kind: "notified";
}

/** An attempt of a `callback` node waits for its event. */
export interface CallbackWaits extends OfNode {
  readonly kind: "callback";
  readonly attempt: number;
  /** ISO 8601. */
  readonly requestedAt: string;
  readonly expiresAt: string;
}

/** Why a request could not be delivered. */
export interface DeliveryError {
  readonly code: string;
  readonly message: string;
}

/** The end of the notification of a gate. */
export interface GateNotification {
  readonly status: "sent" | "failed";
  /** Of a notification that could not be delivered. */
  readonly error?: DeliveryError | undefined;
}

/** A gate that waits for a person, as everybody is shown it (workflow.md, "What is recorded"). */
export interface Gate {
  readonly nodeId: string;
  readonly title: string;
  readonly message: string;
  readonly form?: Readonly<Record<string, unknown>> | undefined;
  /** The secret parts of the gate's output, from the definition. Clients must not show them. */
  readonly sensitive?: true | string[] | undefined;
  /** ISO 8601. */
  readonly requestedAt: string;
  readonly expiresAt?: string | undefined;
  /** Of a gate with `notify`, once people were told, or could not be told. */
  readonly notification?: GateNotification | undefined;
}

export interface NodeError {
  readonly code: string;
  readonly message: string;
  /** The status and the body that a service answered with. */
  readonly status?: number | undefined;
  readonly body?: unknown;
  /** Whether `body` is only the beginning of the text of a longer body. */
  readonly bodyTruncated?: boolean | undefined;
  /** The node inside of a `map` or `loop` that failed: `m[2].f`. */
  readonly nodeId?: string | undefined;
}

/** The error code of a `loop` whose `until` never became true. */
export const LOOP_EXHAUSTED = "loop_exhausted";

/** One place in the log: entries from the `from`th on. */
export interface LedgerChunk {
  readonly from: number;
  readonly entries: readonly LedgerEntry[];
  /** How many nodes had completed, where other processes list the run while it executes. */
  readonly completedNodeCount?: number | undefined;
  /** With the last entries of a run that has them. */
  readonly finalOutputs?: unknown;
}

/** The log stream of a run's ledger. */
export function ledgerStream(runId: string): string {
  return `workflow-run:${runId}`;
}
