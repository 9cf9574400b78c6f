/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const INNER = ["items", "anyOf", "properties", "$defs", "definitions"];

/**
 * Whether a JSON Schema keeps the rules of the strict mode of Chat Completions, in which services refuse every other schema: objects allow no
 * further properties and require all of theirs.
 */
export function isStrictSchema(schema: unknown): boolean {
  if (typeof schema !== "object" || schema === null) return true;
  if (Array.isArray(schema)) return schema.every(isStrictSchema);
  const { type, properties, required, additionalProperties } = schema as Readonly<Record<string, unknown>>;
  if (type === "object" || properties !== undefined) {
    const names = Object.keys((properties ?? {}) as object);
    if (additionalProperties !== false) return false;
    if (!names.every((name) => Array.isArray(required) && required.includes(name))) return false;
  }
  return INNER.every((keyword) => {
    const inner = (schema as Readonly<Record<string, unknown>>)[keyword];
    const isTable = keyword === "properties" || keyword === "$defs" || keyword === "definitions";
    return isTable ? Object.values((inner ?? {}) as object).every(isStrictSchema) : isStrictSchema(inner);
  });
}
