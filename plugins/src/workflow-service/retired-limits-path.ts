// Old paths of this package. They go in the next minor version.
export { GRANT_MS } from "./limits.ts";

// Once in a process. Browsers have no warnings.
globalThis.process?.emitWarning?.(
  "workflow-service/limits of @portico/plugins: import GRANT_MS of @portico/plugins/workflow-service/grants instead",
  "DeprecationWarning",
  "PORTICO_WORKFLOW_LIMITS_PATH",
);
