// Run after a change of a node's schema: `npm run docs:workflow`.
import { readFileSync, writeFileSync } from "node:fs";
import { publishedSchema, withNodeReference } from "./workflow-reference.ts";

const page = new URL("../../../docs/workflow-definitions.md", import.meta.url);
writeFileSync(page, await withNodeReference(readFileSync(page, "utf8")));
writeFileSync(new URL("../../../docs/workflow-definition.schema.json", import.meta.url), await publishedSchema());
