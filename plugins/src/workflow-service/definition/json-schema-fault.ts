import type { Ajv2020 } from "ajv/dist/2020.js";
import type { BoundSchema, SchemaFaultPlace } from "./bound-schema.ts";
import { createAjv } from "./create-ajv.ts";

/** Compiles the schema of schemas once, because that takes longer than most schemas. It does not keep the checked schemas. */
let schemas: Ajv2020 | undefined;

/**
 * Why an object is not a usable JSON Schema 2020-12. The sentence quotes only the schema. Undefined for a usable schema. References can
 * only point into the same schema.
 */
export function jsonSchemaFault(
  schema: Readonly<Record<string, unknown>>,
  boundSchema: BoundSchema,
): SchemaFaultPlace | undefined {
  // This check comes first, because the other checks may take long.
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
    // One instance per schema, because a shared instance would keep all schemas in memory.
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
