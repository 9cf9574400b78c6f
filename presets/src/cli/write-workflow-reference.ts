// Run after a change of a node's schema: `npm run docs:workflow`.
import { readFileSync, writeFileSync } from "node:fs";
import { publishedSchema, withFunctionReference, withNodeReference } from "./workflow-reference.ts";
import { writePublishedSchema } from "./write-published-schema.ts";

const page = new URL("../../../docs/workflow-definitions.md", import.meta.url);
writeFileSync(page, await withNodeReference(readFileSync(page, "utf8")));
const functions = new URL("../../../docs/workflow-functions.md", import.meta.url);
writeFileSync(functions, withFunctionReference(readFileSync(functions, "utf8")));
writePublishedSchema("workflow-definition", await publishedSchema());
