import type { NodeError } from "../runs/ledger-entry.ts";
import type { GraphOutcome } from "./running.ts";

/** The failure of a `map` or `loop`: the error of the innermost node that failed, with its id. */
export function innerFailed({ error, nodeId }: GraphOutcome & { readonly type: "failed" }): AttemptsFailed {
  return new AttemptsFailed({ nodeId, ...error }, 1);
}

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
