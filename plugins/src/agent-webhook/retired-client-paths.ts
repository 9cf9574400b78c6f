// Old paths of this package. They go in the next minor version.
export * from "./client.ts";

// Once in a process. Browsers have no warnings.
globalThis.process?.emitWarning?.(
  "agent-webhook/limits, agent-webhook/render-template and agent-webhook/webhook-configuration of @portico/plugins: import @portico/plugins/agent-webhook/client instead",
  "DeprecationWarning",
  "PORTICO_AGENT_WEBHOOK_PATHS",
);
