// Functions with which programs read and check definitions as the service does: `portico workflow check`, editors, tests of definitions.
export type { Definition } from "./definition/definition.ts";
export { definitionJsonSchema } from "./definition/definition-json-schema.ts";
export { type DeployedDefinitions, readDeployed } from "./definition/open-catalogue.ts";
export { functionReference } from "./definition/reference.ts";
export { lintDefinition } from "./definition/lint-definition.ts";
export { idOfFile, loadDefinition } from "./definition/load-definition.ts";
export { mermaidGraph } from "./definition/mermaid-graph.ts";
export { readDefinitions } from "./definition/read-definitions.ts";
export { nodeReference } from "./definition/reference.ts";
export { type BrokenDefinition } from "./definition/open-catalogue.ts";
export { nodeRules, type NodeRulesOptions } from "./kinds/node-table.ts";
