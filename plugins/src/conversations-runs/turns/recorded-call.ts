import type { ports } from "@portico/core";

/** A tool call of a turn for the record: with the arguments that the tool got. */
export interface RecordedCall extends ports.TurnToolCall {
  /** The arguments of the model, if a person changed them. */
  readonly proposed?: unknown;
  readonly decision?: ports.CallDecision | undefined;
}

/** How an approval ended. `expired`: no decision came in time. `withdrawn`: the turn was stopped. */
export interface Decision {
  readonly decision: "approve" | "reject" | "expired" | "withdrawn";
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly userId?: string | undefined;
  /** In place of the arguments of the model. */
  readonly arguments?: unknown;
  readonly comment?: string | undefined;
}

/** The part of what clients are told of a decided call that the records of its turn keep. */
export interface EventDecision extends ports.CallDecision {
  readonly callId: string;
  /** The model's ID, if it is another one. */
  readonly toolCallId?: string | undefined;
  readonly toolId: string;
}

/** The words for the ends of approvals in events and records. */
export const STATUS = { approve: "approved", reject: "rejected", expired: "expired", withdrawn: "withdrawn" } as const;
