import type { Ajv2020 } from "ajv/dist/2020.js";
import type { BoundSchema, SchemaFaultPlace } from "./bound-schema.ts";
import { createAjv } from "./create-ajv.ts";

/** Compiles the schema of schemas once, which takes longer than most schemas do. It keeps none that it looks at. */
let schemas: Ajv2020 | undefined;

/**
 * Why an object is not a usable JSON Schema 2020-12, in a sentence that quotes only the schema. Undefined for a usable schema. References
 * reach within it only.
 */
export function jsonSchemaFault(
  schema: Readonly<Record<string, unknown>>,
  boundSchema: BoundSchema,
): SchemaFaultPlace | undefined {
  // Before anything else looks at it: that is what may take long.
  const excess = boundSchema(schema);
  if (excess) return excess;
  const message = compileFault(schema);
  return message === undefined ? undefined : { path: [], message };
}

function compileFault(schema: Readonly<Record<string, unknown>>): string | undefined {
  try {
    const { $schema, ...rest } = schema;
    if ($schema !== undefined && $schema !== "https://json-schema.org/draft/2020-12/schema") {
      return "Schemas must use JSON Schema 2020-12: omit `$schema`, or set it to this version";
    }
    schemas ??= createAjv();
    if (!schemas.validateSchema(rest)) {
      const [error] = schemas.errors ?? [];
      return `Invalid JSON Schema: ${error?.instancePath || "the schema"} ${error?.message ?? "is wrong"}`;
    }
    // One for each schema: a shared one would keep every schema that it ever saw.
    createAjv({ meta: false, validateSchema: false }).compile(rest);
    return undefined;
  } catch (cause) {
    const { message = "", missingRef } = cause as { message?: string; missingRef?: string };
    if (missingRef !== undefined || /resolve reference|MissingRef/i.test(message)) {
      return "A reference of this JSON Schema has no target: `$ref` can only refer to the same schema";
    }
    return "This JSON Schema cannot be used";
  }
}
