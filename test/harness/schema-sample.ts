import { isRecord } from "@portico/core/contract";

/**
 * A small value that fits a JSON schema, always the same for the same schema. The echo model answers with it where its answer must fit a
 * schema.
 */
export function schemaSample(schema: unknown, name = "value"): unknown {
  if (!isRecord(schema)) return null;
  if ("const" in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0] as unknown;
  for (const choice of [schema.anyOf, schema.oneOf]) {
    if (Array.isArray(choice)) return schemaSample(choice[0], name);
  }
  const type = Array.isArray(schema.type) ? (schema.type[0] as unknown) : schema.type;
  switch (type) {
    case "string":
      return name;
    case "integer":
    case "number":
      return 1;
    case "boolean":
      return true;
    case "array":
      return isRecord(schema.items) ? [schemaSample(schema.items, name)] : [];
    case "null":
      return null;
    default:
      return sampleObject(schema);
  }
}

function sampleObject(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : Object.keys(properties);
  return Object.fromEntries(required.map((key: string) => [key, schemaSample(properties[key], key)]));
}
