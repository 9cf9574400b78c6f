// Old paths of this package. They go in the next minor version.
export { isTerminal, RUN_STATUSES, type RunStatus } from "./contract.ts";

// Once in a process. Browsers have no warnings.
globalThis.process?.emitWarning?.(
  "workflow-service/run-state of @portico/plugins: import @portico/plugins/workflow-service/contract instead",
  "DeprecationWarning",
  "PORTICO_WORKFLOW_RUN_STATE_PATH",
);
