import type { NodeError } from "../runs/ledger-entry.ts";

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
