import type { CompletionSchema } from "./code-editor.ts";

export type Json = unknown;
export type Step = string | number;

/** The schemas that apply at a path of a value: those that its parts refer to and combine, if they fit the value. Also the value there. */
export function schemasAt(
  root: CompletionSchema,
  path: readonly Step[],
  value: Json,
): { readonly schemas: readonly CompletionSchema[]; readonly value: Json } {
  let schemas = expand(root, root, value);
  let current = value;
  for (const step of path) {
    current = stepInto(current, step);
    schemas = schemas.flatMap((schema) => inside(schema, step)).flatMap((schema) => expand(root, schema, current));
  }
  return { schemas, value: current };
}

/** A schema and those that it refers to and combines, if they fit the value. */
export function expand(root: CompletionSchema, schema: CompletionSchema, value: Json, depth = 0): CompletionSchema[] {
  if (depth > 8) return [];
  const more = (each: CompletionSchema | undefined) => (each ? expand(root, each, value, depth + 1) : []);
  const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter((each) => fits(root, each, value));
  return [
    schema,
    ...more(schema.$ref === undefined ? undefined : root.$defs?.[schema.$ref.replace(/^#\/\$defs\//, "")]),
    ...(schema.allOf ?? []).flatMap(more),
    ...choices.flatMap(more),
    ...(schema.if ? more(fits(root, schema.if, value) ? schema.then : schema.else) : []),
  ];
}

/** By constants alone: a text that is being written is seldom valid. */
function fits(root: CompletionSchema, schema: CompletionSchema, value: Json, depth = 0): boolean {
  const { $ref, properties = {}, required = [] } = schema;
  if (depth > 8) return true;
  const target = $ref === undefined ? undefined : root.$defs?.[$ref.replace(/^#\/\$defs\//, "")];
  if (target && !fits(root, target, value, depth + 1)) return false;
  if (schema.const !== undefined && value !== undefined && schema.const !== value) return false;
  if (!isRecord(value)) return Object.values(properties).every((each) => each.const === undefined);
  return Object.entries(properties).every(([name, property]) => {
    if (!(name in value)) return property.const === undefined || !required.includes(name);
    return property.const === undefined || property.const === value[name];
  });
}

function inside(schema: CompletionSchema, step: Step): CompletionSchema[] {
  const found =
    typeof step === "number"
      ? schema.items
      : Object.hasOwn(schema.properties ?? {}, step)
        ? schema.properties?.[step]
        : schema.additionalProperties;
  return typeof found === "object" ? [found] : [];
}

function stepInto(value: Json, step: Step): Json {
  if (typeof step === "number") return Array.isArray(value) ? value[step] : undefined;
  return isRecord(value) && Object.hasOwn(value, step) ? value[step] : undefined;
}

export function isRecord(value: Json): value is Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
