// Run this after a change of the schema of log lines: `npm run docs:log`.
import { readFileSync, writeFileSync } from "node:fs";
import { publishedLogSchema, withLogReference } from "./log-reference.ts";
import { writePublishedSchema } from "./write-published-schema.ts";

const docs = new URL("../../../docs/", import.meta.url);
const page = new URL("observability.md", docs);
writeFileSync(page, withLogReference(readFileSync(page, "utf8")));
writePublishedSchema("log-line", publishedLogSchema());
