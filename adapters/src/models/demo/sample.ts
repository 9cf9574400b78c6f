/** The parts of a JSON Schema that a sample is made from. */
interface SampleSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, SampleSchema>>;
  readonly required?: readonly string[];
  readonly items?: SampleSchema;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly anyOf?: readonly SampleSchema[];
  readonly oneOf?: readonly SampleSchema[];
}

const DEEPEST = 8;

/** A value that fits a JSON Schema, always the same one; strings without a choice become `text`. */
export function sampleOf(schema: unknown, text: string, depth = 0): unknown {
  if (typeof schema !== "object" || schema === null || depth > DEEPEST) return null;
  const { type, enum: choices, properties, required, items, ...rest } = schema as SampleSchema;
  if (rest.const !== undefined) return rest.const;
  if (rest.default !== undefined) return rest.default;
  if (choices && choices.length > 0) return choices[0];
  const alternative = rest.anyOf?.[0] ?? rest.oneOf?.[0];
  if (alternative) return sampleOf(alternative, text, depth + 1);
  switch (typeof type === "string" ? type : (type?.[0] ?? (properties ? "object" : "string"))) {
    case "object": {
      const names = required ?? Object.keys(properties ?? {});
      return Object.fromEntries(names.map((name) => [name, sampleOf(properties?.[name] ?? { type: "string" }, text, depth + 1)]));
    }
    case "array":
      return Array.from({ length: Math.min(Math.max(rest.minItems ?? 1, 1), 100) }, () =>
        sampleOf(items ?? { type: "string" }, text, depth + 1),
      );
    case "number":
    case "integer":
      return Math.ceil(rest.minimum ?? 1);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return text;
  }
}
