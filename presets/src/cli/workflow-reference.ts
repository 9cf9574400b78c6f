import { definitionJsonSchema } from "@portico/plugins/workflow-service/definition-json-schema";
import { nodeReference } from "@portico/plugins/workflow-service/node-reference";
import { shapeNodes } from "@portico/plugins/workflow-service/shape-nodes";

const BEGIN = "<!-- Kinds of nodes: generated from their schemas by `npm run docs:workflow`; edit the schemas. -->";
const END = "<!-- End of the kinds of nodes. -->";

/** The kinds of nodes that the page and the published schema describe. */
const described = shapeNodes;

/** The page with what it says of kinds of nodes brought up to date. Throws when it has lost a mark. */
export function withNodeReference(page: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error("docs/workflow-definitions.md has lost the marks around its kinds of nodes");
  return `${page.slice(0, begin)}${BEGIN}\n\n${nodeReference(described)}\n\n${page.slice(end)}`;
}

/** The published JSON Schema of definitions. */
export function publishedSchema(): string {
  return `${JSON.stringify(definitionJsonSchema(described), null, 2)}\n`;
}
