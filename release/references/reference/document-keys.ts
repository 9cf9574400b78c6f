import { publishedAgentSchema } from "../agent.ts";
import { publishedSchema } from "../workflows.ts";
import { code, table } from "./table.ts";

/** What the generator reads of a JSON Schema. */
interface Schema {
  readonly description?: string;
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

/** The keys of an `agent.json`. */
export function agentKeys(): string {
  return keysOf(JSON.parse(publishedAgentSchema()) as Schema);
}

/** The keys of a workflow definition, and of each of its nodes. */
export async function definitionKeys(): Promise<string> {
  const schema = JSON.parse(await publishedSchema()) as Schema & { readonly $defs: { readonly node: Schema } };
  return [
    "A duration is `500ms`, `10s`, `5m`, `2h`, `1d`, or ISO 8601 (`PT5M`, `P1DT2H`), up to 366 days.",
    "## The document",
    keysOf(schema),
    "## Each node",
    "The fields of `with`: [kinds of nodes](workflow-nodes.md).",
    keysOf(schema.$defs.node),
  ].join("\n\n");
}

function keysOf(schema: Schema): string {
  return table(["Key", "Meaning", "Takes"], rowsOf(schema, ""));
}

function rowsOf({ properties = {}, required = [] }: Schema, path: string): string[][] {
  return Object.entries(properties).flatMap(([name, value]) => {
    if (name === "$schema") return [];
    const key = `${path}${name}`;
    const isRequired = required.includes(name) ? "**Required.**" : "";
    const own = [code(key), [value.description, isRequired].filter(Boolean).join(" "), takenBy(value)];
    const inner = [value, ...(value.anyOf ?? [])];
    return [own, ...inner.flatMap((each) => [...rowsOf(each, `${key}.`), ...rowsOf(each.items ?? {}, `${key}[].`)])];
  });
}

/** Which values a key takes, as far as its description does not say it. */
function takenBy(schema: Schema): string {
  const { type, enum: values, minimum, maximum, maxItems, items, anyOf } = schema;
  if (values) return values.map((value) => code(value)).join(", ");
  if (anyOf) return anyOf.map(takenBy).filter(Boolean).join(", or ");
  if (type === "boolean") return "true or false";
  if (type === "string") return "text";
  if (type === "array")
    return `list${maxItems === undefined ? "" : `, at most ${maxItems.toLocaleString("en")}`}${items?.enum ? `: ${takenBy(items)}` : ""}`;
  if (type !== "integer" && type !== "number") return type ?? "";
  const most = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER ? maximum : undefined;
  const bounds = [
    minimum === undefined ? "" : `at least ${minimum.toLocaleString("en")}`,
    most === undefined ? "" : `at most ${most.toLocaleString("en")}`,
  ];
  return [type === "integer" ? "whole number" : "number", ...bounds].filter(Boolean).join(", ");
}
