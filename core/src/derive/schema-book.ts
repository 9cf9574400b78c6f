import { toJsonSchema } from "@valibot/to-json-schema";
import type { Schema } from "../route.ts";

export type JsonSchema = { readonly [keyword: string]: unknown } & {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
};

/** JSON schemas of one document. What a schema refers to within itself moves to the document's own components. */
export class SchemaBook {
  readonly shared: Record<string, unknown> = {};

  /** The schema of what goes over the wire, before any transformation. What JSON Schema cannot say is left out. */
  of(name: string, schema: Schema): JsonSchema {
    const { $schema: _dialect, $defs = {}, ...rest } = toJsonSchema(schema, { errorMode: "ignore", typeMode: "input" });
    for (const [key, definition] of Object.entries($defs)) this.shared[`${name}.${key}`] = moved(definition, name);
    return moved(rest, name) as JsonSchema;
  }
}

/** `#/$defs/…` means the root of the document, which is no longer the schema itself. */
function moved(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((each) => moved(each, name));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === "$ref" && typeof each === "string" ? each.replace("#/$defs/", `#/components/schemas/${name}.`) : moved(each, name),
    ]),
  );
}
