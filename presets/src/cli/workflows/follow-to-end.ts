import { EXIT } from "../exit-codes.ts";
import { printableJson } from "../terminal/printable.ts";
import { followRun } from "./follow-run.ts";
import { runLines } from "./run-lines.ts";
import type { RunName, RunningService } from "./running-service.ts";

export interface FollowedRun {
  find(): Promise<RunningService>;
  readonly run: RunName;
  /** One JSON object per event, in place of lines for a person. */
  readonly asJson: boolean;
  /** Flags that lead another command to the same service. */
  readonly more: readonly string[];
}

/**
 * Print what a run does until it has ended, or until Ctrl-C or a reader that leaves, neither of which it notices. Answers the exit code: 0 where it
 * has completed, 2 where it ended otherwise, 130 where somebody left. Throws CommandFailed.
 */
export async function followToEnd({ find, run, asJson, more }: FollowedRun): Promise<number> {
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  process.once("SIGINT", leave);
  process.stdout.once("error", leave);
  const onAway = () => console.error("The workflow service cannot be reached; waiting for it…");
  let hasCompleted = false;
  try {
    for await (const event of followRun({ find, run, signal: leaving.signal, onAway })) {
      const lines = asJson ? [printableJson({ event: event.event, data: event.data })] : runLines(event, more);
      for (const line of lines) console.log(line);
      if (event.event === "workflow:complete") hasCompleted = event.data.status === "completed";
    }
    return hasCompleted ? EXIT.ok : EXIT.notCompleted;
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
    console.error(`The run goes on. To follow it again: ${["portico workflow follow", run.runId, ...more].join(" ")}`);
    return EXIT.stopped;
  } finally {
    process.off("SIGINT", leave);
    process.stdout.off("error", leave);
  }
}
