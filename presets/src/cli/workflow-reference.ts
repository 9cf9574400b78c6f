import type { ports } from "@portico/core";
import { definitionJsonSchema } from "@portico/plugins/workflow-service/definitions";
import { nodeReference } from "@portico/plugins/workflow-service/definitions";
import * as v from "valibot";
import { platformSchema } from "../settings/platform.ts";
import { DEFAULT_PRESET } from "./preset-table.ts";
import { readNodeRules } from "./workflows/node-rules.ts";

const BEGIN = "<!-- Kinds of nodes: generated from their schemas by `npm run docs:workflow`; edit the schemas. -->";
const END = "<!-- End of the kinds of nodes. -->";

/** Updates the kinds of nodes in the page. Throws if a mark is missing. */
export async function withNodeReference(page: string): Promise<string> {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error("docs/workflow-definitions.md lacks the marks around its kinds of nodes");
  return `${page.slice(0, begin)}${BEGIN}\n\n${nodeReference(await described())}\n\n${page.slice(end)}`;
}

/** The published JSON Schema of definitions. */
export async function publishedSchema(): Promise<string> {
  return `${JSON.stringify(definitionJsonSchema(await described()), null, 2)}\n`;
}

/** The kinds of nodes that the page and the published schema describe: the kinds of an instance with default settings. */
async function described(): Promise<ReadonlyMap<string, ports.NodeRules>> {
  // The documentation must not depend on this machine.
  const settings = v.parse(platformSchema, { autoProviders: false });
  const { types } = await readNodeRules({ settings, preset: DEFAULT_PRESET });
  return types;
}
