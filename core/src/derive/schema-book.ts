import { toJsonSchema } from "@valibot/to-json-schema";
import type { Schema } from "../grammar/contract.ts";

/** A JSON Schema of an object or a value. */
export type JsonSchema = { readonly [keyword: string]: unknown } & {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
};

/** JSON schemas of one document. Local definitions of a schema move to the document's shared definitions. */
export class SchemaBook {
  readonly shared: Record<string, unknown> = {};
  readonly #home: string;

  /** `home` is the location of shared definitions in the document, as `$ref` names it. */
  constructor(home = "#/components/schemas/") {
    this.#home = home;
  }

  /** The schema of the value on the wire, before any transformation. Rules that JSON Schema cannot express are left out. */
  of(name: string, schema: Schema): JsonSchema {
    const { $schema: _dialect, $defs = {}, ...rest } = toJsonSchema(schema, { errorMode: "ignore", typeMode: "input" });
    for (const [key, definition] of Object.entries($defs)) this.shared[`${name}.${key}`] = moved(definition, this.#home + name);
    return moved(rest, this.#home + name) as JsonSchema;
  }
}

/** `#/$defs/…` refers to the root of the document, which is no longer the schema itself. */
function moved(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((each) => moved(each, name));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === "$ref" && typeof each === "string" ? each.replace("#/$defs/", `${name}.`) : moved(each, name),
    ]),
  );
}

/** The description of a document itself, in OpenAPI and AsyncAPI alike. */
export interface DocumentInfo {
  readonly title: string;
  readonly version: string;
  readonly description?: string;
  readonly license?: { readonly name: string; readonly url?: string };
}
