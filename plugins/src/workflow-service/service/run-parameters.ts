import { workflowErrors } from "../errors.ts";
import { isNodeFailed } from "../runner/attempt.ts";
import type { ParametersTaken } from "../runs/ledger-entry.ts";
import { runContext, type SecretKeeper } from "../secrecy/secret-keeper.ts";

/** The parameters of an earlier run, in plain form. Throws `run_not_resumable` if their secret parts cannot be opened. */
export async function openParameters(
  keeper: SecretKeeper,
  runId: string,
  { parameters: value, hidden }: ParametersTaken,
): Promise<Readonly<Record<string, unknown>>> {
  try {
    const opened = await keeper.open(runContext(runId), { value, hidden });
    // They were checked when the run was accepted.
    return opened.value as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw isNodeFailed(error) ? notResumable(error.message) : error;
  }
}

/** The error with a reason for people. */
export function notResumable(reason: string): Error {
  return workflowErrors.run_not_resumable(`The run cannot be resumed: ${reason}`);
}
