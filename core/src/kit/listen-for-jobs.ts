import { setPriority } from "node:os";
import { parentPort } from "node:worker_threads";
import { READY } from "./job-thread.ts";

/**
 * The message loop of the module of a `JobThread`, started once the module is ready. `transfer` names the buffers of an answer that move to the
 * process.
 */
export function listenForJobs<Job, Answer>(
  answer: (job: Job) => Answer,
  transfer: (answer: Answer) => readonly ArrayBuffer[] = () => [],
): void {
  yieldToEventLoop();
  parentPort?.on("message", (job: Job) => {
    const given = answer(job);
    parentPort?.postMessage(given, [...transfer(given)]);
  });
  parentPort?.postMessage(READY, []);
}

/** Lowers the priority of this thread, so that jobs on all processors do not delay requests. Only Linux has priorities of threads. */
function yieldToEventLoop(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(NICE);
  } catch {
    // The platform forbids it. Then all threads have the same priority.
  }
}

const NICE = 10;
