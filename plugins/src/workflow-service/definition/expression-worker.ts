import { parentPort } from "node:worker_threads";
import { evaluateSource } from "./create-expressions.ts";
import type { ExpressionJob } from "./expression-thread.ts";

// Runs in a worker thread, because an evaluation near its limit takes about a second.

parentPort?.on("message", ({ source, scope }: ExpressionJob) => parentPort?.postMessage(evaluateSource(source, scope), []));
