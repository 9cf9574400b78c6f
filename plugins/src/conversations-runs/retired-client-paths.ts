// Old paths of this package. They go in the next minor version.
export * from "./client.ts";

// Once in a process. Browsers have no warnings.
globalThis.process?.emitWarning?.(
  "conversations-runs/canonical-content, conversations-runs/channel, conversations-runs/limits and conversations-runs/query-contract of @portico/plugins: import @portico/plugins/conversations-runs/client instead",
  "DeprecationWarning",
  "PORTICO_CONVERSATIONS_RUNS_PATHS",
);
