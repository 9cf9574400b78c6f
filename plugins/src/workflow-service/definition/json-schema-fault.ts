import { type BoundSchema, compileSchema, SchemaInvalid, type SchemaFaultPlace } from "@portico/core/kit";

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
  const { $schema } = schema;
  if ($schema !== undefined && $schema !== "https://json-schema.org/draft/2020-12/schema")
    return { path: [], message: "Schemas must use JSON Schema 2020-12: omit `$schema`, or set it to this version" };
  try {
    compileSchema(schema);
    return undefined;
  } catch (error) {
    if (error instanceof SchemaInvalid) return { path: [], message: error.message };
    return { path: [], message: "This JSON Schema cannot be used" };
  }
}
