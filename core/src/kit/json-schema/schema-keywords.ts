/** Keywords whose value is a schema. */
export const SCHEMA = new Set([
  ...["additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then"],
  ...["unevaluatedItems", "unevaluatedProperties"],
]);
/** A list of schemas. */
export const SCHEMAS = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
/** Schemas by name. */
export const NAMED_SCHEMAS = new Set(["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"]);
const OTHERS = [
  ...["$anchor", "$comment", "$dynamicAnchor", "$dynamicRef", "$id", "$ref", "$schema", "$vocabulary"],
  ...["const", "contentEncoding", "contentMediaType", "default", "dependentRequired", "deprecated", "description", "enum"],
  ...["examples", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maxItems", "maxLength", "maxProperties"],
  ...["maximum", "minContains", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "pattern", "readOnly"],
  ...["required", "title", "type", "uniqueItems", "writeOnly"],
];

/** Keywords of JSON Schema 2020-12. */
export const KEYWORDS: ReadonlySet<string> = new Set([...SCHEMA, ...SCHEMAS, ...NAMED_SCHEMAS, ...OTHERS]);
