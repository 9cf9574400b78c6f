import { listenForJobs } from "@portico/core/kit";
import { evaluateSource } from "./create-expressions.ts";
import type { ExpressionJob } from "./expression-thread.ts";

// Runs in a worker thread, because an evaluation near its limit takes about a second.

listenForJobs(({ source, scope }: ExpressionJob) => evaluateSource(source, scope));
