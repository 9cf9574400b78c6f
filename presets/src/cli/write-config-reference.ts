// Run this after every change of a settings schema: `npm run docs:config`.
import { readFileSync, writeFileSync } from "node:fs";
import { withReference } from "../settings/reference-page.ts";

const page = new URL("../../../docs/configuration.md", import.meta.url);
writeFileSync(page, withReference(readFileSync(page, "utf8")));
