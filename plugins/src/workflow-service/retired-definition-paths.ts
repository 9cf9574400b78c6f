// Old paths of this package. They go in the next minor version.
export * from "./definitions.ts";

// Once in a process. Browsers have no warnings.
globalThis.process?.emitWarning?.(
  "workflow-service/definition, workflow-service/definition-json-schema, workflow-service/load-definition and workflow-service/node-reference of @portico/plugins: import @portico/plugins/workflow-service/definitions instead",
  "DeprecationWarning",
  "PORTICO_WORKFLOW_DEFINITION_PATHS",
);
