import type { ports } from "@portico/core";
import type { Hidden } from "../secrecy/secret-keeper.ts";
import type { NodeError } from "../runs/ledger-entry.ts";

/** The stored result of an attempt. It includes the times, so that history does not change after a resume. */
export type Attempt = {
  /** What models used for it. */
  readonly usage?: ports.ModelUsage | undefined;
} & (
  | {
      readonly isOk: true;
      readonly output: unknown;
      /** The secret parts of a stored output. */
      readonly hidden?: Hidden | undefined;
      readonly startedAt?: number | undefined;
      readonly endedAt?: number | undefined;
    }
  | {
      readonly isOk: false;
      readonly code: string;
      readonly message: string;
      readonly isFinal: boolean;
      /** What a service answered. */
      readonly answer?: ports.FailedAnswer | undefined;
      /** How long the next attempt waits at least, in milliseconds. */
      readonly retryAfterMs?: number | undefined;
    }
);

/** Thrown when a node has failed after this number of attempts. */
export class AttemptsFailed extends Error {
  override readonly name = "AttemptsFailed";
  readonly error: NodeError;
  readonly attempts: number;

  constructor(error: NodeError, attempts: number) {
    super(error.message);
    this.error = error;
    this.attempts = attempts;
  }
}

/** Thrown if a node was running when its process ended, and must not be repeated. This ends the run. */
export class NodeInterrupted extends Error {
  override readonly name = "NodeInterrupted";
  readonly nodeId: string;

  constructor(nodeId: string) {
    super(`Node ${nodeId} was running when its process ended, and must not be repeated`);
    this.nodeId = nodeId;
  }
}

/** By name, so that it works across duplicate copies of the package. */
export function isNodeFailed(thrown: unknown): thrown is ports.NodeFailed {
  return thrown instanceof Error && thrown.name === "NodeFailed" && "code" in thrown;
}
