import { writeFileSync } from "node:fs";

/** Beside the documentation, and in the package `portico`. */
const FOLDERS = [new URL("../../docs/", import.meta.url), new URL("../../presets/cli/schemas/", import.meta.url)];

/** Names of the published JSON Schemas. */
export type PublishedSchema = "agent" | "log-line" | "workflow-definition";

/**
 * The text of a published JSON Schema. Its `$id` is a name and no address, so that it stays the same wherever the file is. Schemas of one
 * instance have no `$id`, because they differ from the published schema.
 */
export function publishedSchemaText(name: PublishedSchema, schema: object): string {
  const { $schema, ...rest } = schema as { readonly $schema?: string };
  return `${JSON.stringify({ $schema, $id: `urn:portico:${name}`, ...rest }, null, 2)}\n`;
}

/** Writes a published JSON Schema to its places. */
export function writePublishedSchema(name: PublishedSchema, text: string): void {
  for (const folder of FOLDERS) writeFileSync(new URL(`${name}.schema.json`, folder), text);
}
