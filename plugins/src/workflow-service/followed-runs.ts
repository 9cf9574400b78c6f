/** What another package needs to follow runs: `@portico/plugins/workflow-service/followed-runs`. */
export { isTerminal } from "./contracts/run-state.ts";
export { readFinalOutputs } from "./routes/events.ts";
export type { LedgerEntry } from "./runs/ledger-entry.ts";
export { childRunId } from "./runs/run-id.ts";
export type { RunRecord } from "./runs/run-record.ts";
export { entriesUntilEnd } from "./service/follow-run.ts";
export { toServiceError } from "./service/start-runs.ts";
