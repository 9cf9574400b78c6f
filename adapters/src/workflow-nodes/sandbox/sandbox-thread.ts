import { ports } from "@portico/core";
import { JobOverran, JobThread } from "./job-thread.ts";
import type { SandboxAnswer, SandboxLimits, SandboxOutcome } from "./sandbox.ts";

/** A thread whose module answers jobs out of a sandbox, with the limits of which it is begun. */
export interface SandboxThread<Job> {
  /** Throws the signal's reason, or what the thread died of. */
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
  // Some functions of the language never look at their time, and a busy machine gives a thread less of it than it waits.
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
