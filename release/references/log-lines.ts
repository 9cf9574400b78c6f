// Run this after a change of the schema of log lines: `npm run docs:log`.
import { logLineSchema } from "@portico/adapters/telemetry/log-line-schema";
import { publishedSchemaText, writePublishedSchema } from "./published-schema.ts";

/** The published JSON Schema of log lines. */
export function publishedLogSchema(): string {
  return publishedSchemaText("log-line", logLineSchema);
}

if (import.meta.main) writePublishedSchema("log-line", publishedLogSchema());
