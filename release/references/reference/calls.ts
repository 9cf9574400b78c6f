import type { ErrorMaker, ports, RouteContract } from "@portico/core";
import type { Schema } from "../../../core/src/grammar/contract.ts";
import { faults } from "../../../core/src/grammar/error.ts";
import { SchemaBook } from "../../../core/src/derive/schema-book.ts";
import { DEFAULT_PRESET } from "../../../presets/cli/src/preset-table.ts";
import { readSurface } from "../../../presets/cli/src/read-surface.ts";
import { limitTables } from "./limits.ts";
import { bytes, code, table } from "./table.ts";

/** The credential behind the `auth` of routes, for readers. Other names are shown as they are. */
const CREDENTIALS: Readonly<Record<string, string>> = {
  open: "none",
  instance: "a token of the service",
  owner: "an owner's token",
  user: "a token of the service",
  signed: "the signed link",
  agent: "the webhook secret, or the sender's signature",
  instanceToken: "the instance's own token",
  session: "the session",
  service: "the service token",
  "safe-token": "a safe token",
};

/** The page of one surface: each area with its calls, errors and limits. */
export async function callsOf(surface: string): Promise<string> {
  const { areas } = await readSurface({}, { preset: DEFAULT_PRESET, surface });
  const parts = areas.flatMap((area) => {
    const routes = Object.values(area.contract).filter((route) => route.surface === surface);
    return routes.length === 0 ? [] : [partOf(area, routes)];
  });
  return parts.join("\n\n");
}

function partOf({ name, summary }: ports.Area, routes: readonly RouteContract[]): string {
  const calls = routes.map((route) => [
    code(`${route.method} ${route.path}`),
    route.summary,
    CREDENTIALS[route.auth] ?? route.auth,
    inputOf(route),
  ]);
  const errors = new Map<string, ErrorMaker>();
  for (const route of routes)
    for (const error of [...Object.values(route.errors ?? {}), ...Object.values(route.faults ?? {})])
      errors.set(`${error.status} ${error.code} ${error.message ?? ""}`, error);
  const limits = limitTables(name);
  return [
    `## ${name}`,
    summary ?? "",
    table(["Call", "What it does", "Credential", "Takes"], calls),
    ...(errors.size === 0 ? [] : ["**Errors**", errorTable([...errors.values()])]),
    ...(limits === undefined ? [] : ["**Limits**", limits]),
  ]
    .filter((part) => part !== "")
    .join("\n\n");
}

/** Parameters of the query, fields of the body, and headers. A `?` marks what may be left out. */
function inputOf(route: RouteContract): string {
  const parts = [
    ["query", namesOf(route.query)],
    ["body", route.success.kind === "exchange" ? "" : namesOf(route.body)],
    [
      "headers",
      [...(route.waits ? ["Prefer"] : []), ...(route.takesKey ? ["Idempotency-Key"] : [])]
        .map((name) => `${code(name)}?`)
        .join(", "),
    ],
    ["", (route.accepts ?? []).join(", ")],
    ["", route.bodyLimit === undefined ? "" : `at most ${bytes(route.bodyLimit)}`],
  ] as const;
  return parts.flatMap(([kind, names]) => (names === "" ? [] : [`${kind} ${names}`.trim()])).join("; ");
}

function namesOf(schema: Schema | undefined): string {
  if (!schema) return "";
  const { properties = {}, required = [] } = new SchemaBook().of("input", schema);
  return Object.keys(properties)
    .map((name) => (required.includes(name) ? code(name) : `${code(name)}?`))
    .join(", ");
}

/** The errors that any call can have. */
export function errorsOfEveryCall(): string {
  return errorTable(Object.values(faults));
}

function errorTable(errors: readonly ErrorMaker[]): string {
  const rows = errors
    .toSorted((one, other) => one.status - other.status || one.code.localeCompare(other.code))
    .map(({ status, code: word, message }) => [
      String(status),
      code(word),
      message === undefined || message === word ? "" : message,
    ]);
  return table(["Status", "Code", "Message"], rows);
}
