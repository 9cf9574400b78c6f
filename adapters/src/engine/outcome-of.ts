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

/** Run the work's function. Undefined if it was stopped before its end. */
export async function outcomeOf(kind: Kind, execution: Execution, given: OutcomeGiven): Promise<Ending | undefined> {
  const { clock, log, stopped } = given;
  try {
    const output = await kind.work(execution, fromJsonText(execution.input) as object);
    return { state: "completed", endedAt: clock.now(), output: toJsonText("What the work answered", output) };
  } catch (thrown) {
    const reason = stopped();
    if (reason && execution.signal.reason === reason) return undefined;
    // A requested stop is not a failure.
    if (!execution.signal.aborted && !execution.hasEnded) log.error("Work failed", { kind: kind.kind, id: execution.id }, thrown);
    const { name, message } = describeThrown(thrown);
    return { state: "failed", endedAt: clock.now(), error: `${name}: ${message}` };
  }
}
