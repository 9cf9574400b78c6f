import { type LogSchemaPart, logLineSchema } from "@portico/adapters/telemetry/log-line-schema";
import { table } from "./table.ts";

const OF_EVERY_LINE: ReadonlySet<string> = new Set(["level", "time", "msg", "traceId", "spanId"]);

/** Every field of log lines. */
export function logReference(): string {
  const { request, message, cause } = logLineSchema.$defs;
  const own = (from: { readonly properties: Readonly<Record<string, LogSchemaPart>> }) =>
    Object.fromEntries(Object.entries(from.properties).filter(([name]) => !OF_EVERY_LINE.has(name)));
  const tables = [
    ["Every line", Object.fromEntries(Object.entries(message.properties).filter(([name]) => OF_EVERY_LINE.has(name)))],
    ["The line of a request", own(request)],
    ["Other lines, depending on the message", own(message)],
    ["cause", cause.properties],
  ] as const;
  return tables.map(([heading, fields]) => `## ${heading}\n\n${fieldTable(fields)}`).join("\n\n");
}

function fieldTable(fields: Readonly<Record<string, LogSchemaPart>>): string {
  const rows = Object.entries(fields).map(([name, field]) => [
    `\`${name}\``,
    String(field["description"] ?? "The cause of the cause."),
  ]);
  return table(["Field", "Meaning"], rows);
}
