import { writeFileSync } from "node:fs";
import type { PublishedSchema } from "./published-schema.ts";

const FOLDERS = [new URL("../../../docs/", import.meta.url), new URL("../../schemas/", import.meta.url)];

/** Writes a published JSON Schema beside the documentation, and into the package. */
export function writePublishedSchema(name: PublishedSchema, text: string): void {
  for (const folder of FOLDERS) writeFileSync(new URL(`${name}.schema.json`, folder), text);
}
