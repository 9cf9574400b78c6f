import { createAjv } from "./create-ajv.ts";

/**
 * Why an object is no JSON Schema 2020-12 that can be used: in words that quote the schema only. Undefined where it is one. References
 * reach within it only.
 */
export function jsonSchemaFault(schema: Readonly<Record<string, unknown>>): string | undefined {
  try {
    const { $schema, ...rest } = schema;
    if ($schema !== undefined && $schema !== "https://json-schema.org/draft/2020-12/schema") {
      return "Schemas are of JSON Schema 2020-12: leave `$schema` out, or name that";
    }
    // One for each schema: a shared one would keep every schema that it ever saw.
    const ajv = createAjv();
    if (!ajv.validateSchema(rest)) {
      const [error] = ajv.errors ?? [];
      return `This is no JSON Schema: ${error?.instancePath || "the schema"} ${error?.message ?? "is wrong"}`;
    }
    ajv.compile(rest);
    return undefined;
  } catch (cause) {
    const { message = "", missingRef } = cause as { message?: string; missingRef?: string };
    if (missingRef !== undefined || /resolve reference|MissingRef/i.test(message)) {
      return "A reference of this JSON Schema leads nowhere: `$ref` reaches within the same schema only";
    }
    return "This JSON Schema cannot be used";
  }
}
