// Old paths of this package. They go in the next minor version.
export { parseDuration } from "@portico/core";

// Once in a process. Browsers have no warnings.
globalThis.process?.emitWarning?.(
  "workflow-service/parse-duration of @portico/plugins: import parseDuration of @portico/core instead",
  "DeprecationWarning",
  "PORTICO_WORKFLOW_PARSE_DURATION_PATH",
);
