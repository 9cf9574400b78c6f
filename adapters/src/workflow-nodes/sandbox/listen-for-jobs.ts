import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { READY } from "./job-thread.ts";
import type { SandboxAnswer } from "./sandbox.ts";

/** The message loop of a sandbox's thread, started once its module is ready. */
export function listenForJobs<Job>(answer: (job: Job) => SandboxAnswer): void {
  yieldToEventLoop();
  parentPort?.on("message", (job: Job) => parentPort?.postMessage(answer(job), []));
  parentPort?.postMessage(READY, []);
}

/** Lowers the priority of this thread, so that scripts on all processors do not delay requests. Only Linux has priorities of threads. */
function yieldToEventLoop(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(NICE);
  } catch {
    // The platform forbids it. Then all threads have the same priority.
  }
}

const NICE = 10;
