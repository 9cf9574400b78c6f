// Run after a change of an event's schema: `npm run docs:api`.
import { readFileSync, writeFileSync } from "node:fs";
import { withEventReference } from "./event-reference.ts";

const page = new URL("../../../docs/api.md", import.meta.url);
writeFileSync(page, await withEventReference(readFileSync(page, "utf8")));
