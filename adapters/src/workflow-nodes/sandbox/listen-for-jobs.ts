import { parentPort } from "node:worker_threads";
import { READY } from "./job-thread.ts";
import type { SandboxAnswer } from "./sandbox.ts";

/** The message loop of a sandbox's thread, started once its module is ready. */
export function listenForJobs<Job>(answer: (job: Job) => SandboxAnswer): void {
  parentPort?.on("message", (job: Job) => parentPort?.postMessage(answer(job), []));
  parentPort?.postMessage(READY, []);
}
