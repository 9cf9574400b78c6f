import * as v from "valibot";

/** JSON of a schema. Undefined for any other text. */
export function parseJson<T extends v.GenericSchema>(schema: T, text: string): v.InferOutput<T> | undefined {
  try {
    const parsed = v.safeParse(schema, JSON.parse(text));
    return parsed.success ? parsed.output : undefined;
  } catch {
    return undefined;
  }
}
