import type { ValidateFunction } from "ajv/dist/2020.js";
import { createAjv } from "./definition/create-ajv.ts";
import type { JsonSchema } from "./definition/definition.ts";

/** One place that breaks a schema, without its value: a JSON pointer, and what is wrong there. */
export interface SchemaFault {
  readonly path: string;
  readonly message: string;
}

export type Checked = { readonly value: Readonly<Record<string, unknown>> } | { readonly faults: readonly SchemaFault[] };

const MOST_FAULTS = 20;

/** Schemas are kept as long as what they stand in. */
const known = new WeakMap<JsonSchema, Check>();

interface Check {
  readonly validate: ValidateFunction;
  /** Whether it puts anything into what it looks at. */
  readonly fills: boolean;
}

/** A value with the schema's defaults applied, or all that is wrong with it. The value itself is not changed. */
export function checkSchema(schema: JsonSchema, value: Readonly<Record<string, unknown>>): Checked {
  let check = known.get(schema);
  if (!check) {
    // One for each schema: a shared one would keep every schema that it ever saw.
    const ajv = createAjv({ allErrors: true, useDefaults: true });
    const { $schema: _dialect, ...rest } = schema;
    check = { validate: ajv.compile(rest), fills: JSON.stringify(rest).includes('"default":') };
    known.set(schema, check);
  }
  const { validate, fills } = check;
  const copy = fills ? (structuredClone(value) as Readonly<Record<string, unknown>>) : value;
  if (validate(copy)) return { value: copy };
  const faults = (validate.errors ?? []).slice(0, MOST_FAULTS).map(({ instancePath, message, params }) => {
    const missing = (params as { missingProperty?: string }).missingProperty;
    const surplus = (params as { additionalProperty?: string }).additionalProperty;
    const path = [instancePath, missing ?? surplus].filter((part) => part !== undefined).join("/");
    return { path: path === "" ? "/" : path, message: message ?? "does not fit" };
  });
  return { faults };
}
