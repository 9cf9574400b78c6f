import { parentPort } from "node:worker_threads";
import { READY } from "./job-thread.ts";
import type { SandboxAnswer } from "./sandbox.ts";

/** What the module of a sandbox's thread does, once it has all that it needs. */
export function listenForJobs<Job>(answer: (job: Job) => SandboxAnswer): void {
  parentPort?.on("message", (job: Job) => parentPort?.postMessage(answer(job), []));
  parentPort?.postMessage(READY, []);
}
