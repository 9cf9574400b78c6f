import { EXIT } from "../exit-codes.ts";
import { printableJson } from "../terminal/printable.ts";
import { followRun } from "./follow-run.ts";
import { runLines } from "./run-lines.ts";
import type { RunName, RunningService } from "./running-service.ts";

export interface FollowedRun {
  find(): Promise<RunningService>;
  readonly run: RunName;
  /** Prints one JSON object per event, instead of lines for a person. */
  readonly asJson: boolean;
  /** Flags with which another command reaches the same service. */
  readonly more: readonly string[];
}

/**
 * Print the events of a run until it ends. Ctrl-C or a closed output stops only the printing, not the run. Returns the exit code: 0 if the run
 * completed, 2 if it ended otherwise, 130 if following was stopped. Throws CommandFailed.
 */
export async function followToEnd({ find, run, asJson, more }: FollowedRun): Promise<number> {
  const leaving = new AbortController();
  const leave = () => leaving.abort();
  process.once("SIGINT", leave);
  process.stdout.once("error", leave);
  const onAway = () => console.error("The workflow service cannot be reached. Waiting for it…");
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
    console.error(`The run continues. To follow it again: ${["portico workflow follow", run.runId, ...more].join(" ")}`);
    return EXIT.stopped;
  } finally {
    process.off("SIGINT", leave);
    process.stdout.off("error", leave);
  }
}
