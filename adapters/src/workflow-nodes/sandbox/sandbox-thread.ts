import { ports } from "@portico/core";
import { JobOverran, JobThread } from "./job-thread.ts";
import type { SandboxAnswer, SandboxLimits, SandboxOutcome } from "./sandbox.ts";

/** A thread whose module executes jobs in a sandbox with fixed limits. */
export interface SandboxThread<Job> {
  /** Throws the signal's reason, or the error that ended the thread. */
  run(job: Job, signal: AbortSignal): Promise<SandboxOutcome>;
  close(): Promise<void>;
}

export type ThreadLimits = Omit<SandboxLimits, "outputBytes">;

export function createSandboxThread<Job>(
  name: string,
  module: URL,
  limits: ThreadLimits,
  clock: ports.Clock,
): SandboxThread<Job> {
  const given: SandboxLimits = { ...limits, outputBytes: ports.NODE_OUTPUT_BYTES };
  // Some functions of the language never check their time, and on a busy machine a thread waits longer than it runs.
  const timeoutMs = 5 * limits.cpuMs + 1_000;
  const thread = new JobThread<Job, SandboxAnswer>({ name, module, given, timeoutMs, spoils: ({ isSpoilt }) => isSpoilt }, clock);
  return {
    async run(job, signal) {
      try {
        return (await thread.run(job, signal)).outcome;
      } catch (error) {
        if (error instanceof JobOverran) return { kind: "late" };
        throw error;
      }
    },
    close: () => thread.close(),
  };
}
