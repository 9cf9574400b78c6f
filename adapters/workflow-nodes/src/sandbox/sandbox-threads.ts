import { availableParallelism } from "node:os";
import { ports } from "@portico/core";
import { JobOverran, JobPool, PoolBusy, ThreadCrashed } from "@portico/core/kit";
import type { SandboxAnswer, SandboxLimits, SandboxOutcome } from "./sandbox.ts";

/** Threads whose module executes jobs in a sandbox with fixed limits. */
export interface SandboxThreads<Job> {
  /** Throws the signal's reason. */
  run(job: Job, signal: AbortSignal): Promise<ThreadOutcome>;
  close(): Promise<void>;
}

/** The outcome of a job: the sandbox's own, or that of a job that did not begin, or whose thread ended. */
export type ThreadOutcome = SandboxOutcome | { readonly kind: "busy" } | { readonly kind: "crashed" };

export type ThreadLimits = Omit<SandboxLimits, "outputBytes">;

export interface SandboxThreadsOptions {
  readonly name: string;
  readonly module: () => URL;
  readonly limits: ThreadLimits;
  /** Default: one for each processor. */
  readonly threads?: number | undefined;
}

/** How long a job waits for a thread. */
export const WAIT_MS = 5 * 60_000;

export function createSandboxThreads<Job>(
  { name, module, limits, threads = availableParallelism() }: SandboxThreadsOptions,
  clock: ports.Clock,
): SandboxThreads<Job> {
  const given: SandboxLimits = { ...limits, outputBytes: ports.NODE_OUTPUT_BYTES };
  const pool = new JobPool<Job, SandboxAnswer>(
    {
      ...{ name, module, given, threads, waitMs: WAIT_MS },
      // Some functions of the language never check their time.
      cpuMs: limits.cpuMs + 500,
      timeoutMs: 60 * limits.cpuMs + 60_000,
      spoils: ({ isSpoilt }) => isSpoilt,
    },
    clock,
  );
  return {
    async run(job, signal) {
      try {
        return (await pool.run(job, signal)).outcome;
      } catch (error) {
        if (error instanceof JobOverran) return { kind: "late" };
        if (error instanceof PoolBusy) return { kind: "busy" };
        if (error instanceof ThreadCrashed) return { kind: "crashed" };
        throw error;
      }
    },
    close: () => pool.close(),
  };
}
