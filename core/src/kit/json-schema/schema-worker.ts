import { listenForJobs } from "../listen-for-jobs.ts";
import { checkJson } from "./check-json.ts";

// Runs in a worker thread, because no limit of a schema bounds the time of its checks.

// Errors are created for violations. Without stack traces it takes less time.
Error.stackTraceLimit = 0;

listenForJobs(checkJson);
