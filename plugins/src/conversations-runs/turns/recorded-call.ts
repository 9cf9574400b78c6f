import type { ports } from "@portico/core";

/** A tool call of a turn for the record: with the arguments that the tool got. */
export interface RecordedCall extends ports.TurnToolCall {
  /** The arguments of the model, if a person changed them. */
  readonly proposed?: unknown;
  readonly decision?: ports.CallDecision | undefined;
}
