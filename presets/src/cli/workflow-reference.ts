import type { ports } from "@portico/core";
import { definitionJsonSchema } from "@portico/plugins/workflow-service/definition-json-schema";
import { nodeReference } from "@portico/plugins/workflow-service/node-reference";
import * as v from "valibot";
import { platformSchema } from "../settings/platform.ts";
import { DEFAULT_PRESET } from "./preset-table.ts";
import { readNodeRules } from "./workflows/node-rules.ts";

const BEGIN = "<!-- Kinds of nodes: generated from their schemas by `npm run docs:workflow`; edit the schemas. -->";
const END = "<!-- End of the kinds of nodes. -->";

/** The page with what it says of kinds of nodes brought up to date. Throws when it has lost a mark. */
export async function withNodeReference(page: string): Promise<string> {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new Error("docs/workflow-definitions.md has lost the marks around its kinds of nodes");
  return `${page.slice(0, begin)}${BEGIN}\n\n${nodeReference(await described())}\n\n${page.slice(end)}`;
}

/** The published JSON Schema of definitions. */
export async function publishedSchema(): Promise<string> {
  return `${JSON.stringify(definitionJsonSchema(await described()), null, 2)}\n`;
}

/** The kinds of nodes that the page and the published schema describe: those of an instance that nobody configured. */
async function described(): Promise<ReadonlyMap<string, ports.NodeRules>> {
  // What this machine has to offer is no matter of the documentation.
  const settings = v.parse(platformSchema, { autoProviders: false });
  const { types } = await readNodeRules({ settings, preset: DEFAULT_PRESET });
  return types;
}
