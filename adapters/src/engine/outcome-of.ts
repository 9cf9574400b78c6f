import type { ports } from "@portico/core";
import type { Execution } from "./execution.ts";
import type { Ending } from "./journal.ts";
import type { Kind } from "./kind.ts";
import { describeThrown, fromJsonText, toJsonText } from "./work-text.ts";

/** The inputs of an outcome besides the work. */
export interface OutcomeGiven {
  readonly clock: ports.Clock;
  readonly log: ports.Log;
  /** Why the engine has stopped, if it has. */
  stopped(): Error | undefined;
}

/** The result of a work's function. */
export interface Outcome {
  readonly ending: Ending;
  /**
   * Logs an error of the function. Call it when the end is stored: what a process throws that has lost the work without knowing it yet is
   * not a failure of the work.
   */
  logFailure(): void;
}

/** Run the work's function. Undefined if it was stopped before its end. */
export async function outcomeOf(kind: Kind, execution: Execution, given: OutcomeGiven): Promise<Outcome | undefined> {
  const { clock, log, stopped } = given;
  try {
    const output = await kind.work(execution, fromJsonText(execution.input) as object);
    const ending: Ending = { state: "completed", endedAt: clock.now(), output: toJsonText("What the work answered", output) };
    return { ending, logFailure() {} };
  } catch (thrown) {
    const reason = stopped();
    if (reason && execution.signal.reason === reason) return undefined;
    // A requested stop is not a failure.
    const isFailure = !execution.signal.aborted;
    const logFailure = (): void => {
      if (isFailure) log.error("Work failed", { kind: kind.kind, id: execution.id }, thrown);
    };
    const { name, message } = describeThrown(thrown);
    return { ending: { state: "failed", endedAt: clock.now(), error: `${name}: ${message}` }, logFailure };
  }
}
