// Run this after a change of the schema of log lines: `npm run docs:log`.
import { type LogSchemaPart, logLineSchema } from "@portico/adapters/telemetry/log-line-schema";
import { rewritePage, withMarkedPart } from "./marked-part.ts";
import { publishedSchemaText, writePublishedSchema } from "./published-schema.ts";

const MARKS = [
  "<!-- Fields: generated from the schema by `npm run docs:log`; edit the schema. -->",
  "<!-- End of the fields. -->",
] as const;

const OF_EVERY_LINE: ReadonlySet<string> = new Set(["level", "time", "msg", "traceId", "spanId"]);

/** Updates the tables of fields in the page. Throws if a mark is missing. */
export function withLogReference(page: string): string {
  const { request, message, cause } = logLineSchema.$defs;
  const own = (from: { readonly properties: Readonly<Record<string, LogSchemaPart>> }) =>
    Object.fromEntries(Object.entries(from.properties).filter(([name]) => !OF_EVERY_LINE.has(name)));
  const tables = [
    ["Every line", Object.fromEntries(Object.entries(message.properties).filter(([name]) => OF_EVERY_LINE.has(name)))],
    ["The line of a request", own(request)],
    ["Other lines, depending on the message", own(message)],
    ["`cause`", cause.properties],
  ] as const;
  const text = tables.map(([heading, fields]) => `**${heading}**\n\n${table(fields)}`).join("\n\n");
  return withMarkedPart(page, MARKS, text);
}

/** The published JSON Schema of log lines. */
export function publishedLogSchema(): string {
  return publishedSchemaText("log-line", logLineSchema);
}

function table(fields: Readonly<Record<string, LogSchemaPart>>): string {
  const rows = Object.entries(fields).map(([name, field]) => [
    `\`${name}\``,
    String(field["description"] ?? "The cause of the cause."),
  ]);
  return [["Field", "Meaning"], ["---", "---"], ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

if (import.meta.main) {
  await rewritePage("observability.md", withLogReference);
  writePublishedSchema("log-line", publishedLogSchema());
}
