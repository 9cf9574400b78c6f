import { createRequire } from "node:module";
import type * as ajv from "ajv";
import type * as ajv2020 from "ajv/dist/2020.js";

/** Why a tool's arguments break its schema, by path and without their values; undefined where they fit it. */
export type ArgumentsCheck = (args: unknown) => string | undefined;

/** Schemas of tools are kept as long as their definitions are. */
const checks = new WeakMap<object, ArgumentsCheck>();
const load = createRequire(import.meta.url);
const options = { strict: false, allErrors: false, validateFormats: false, logger: false } as const;

/** The check of a tool's JSON Schema, of draft 7 or 2020-12. With an invalid schema, all arguments are refused. */
export function argumentsCheck(schema: Readonly<Record<string, unknown>>): ArgumentsCheck {
  const known = checks.get(schema) ?? createCheck(schema);
  checks.set(schema, known);
  return known;
}

function createCheck(schema: Readonly<Record<string, unknown>>): ArgumentsCheck {
  let validate: ajv.ValidateFunction;
  try {
    const { $schema, ...rest } = schema;
    const isOld = typeof $schema === "string" && /draft-0[4-7]/.test($schema);
    // It takes its time to load: services whose agents call no tools do not wait for it.
    const { Ajv } = load("ajv") as typeof ajv;
    const { Ajv2020 } = load("ajv/dist/2020.js") as typeof ajv2020;
    // One for each schema: a shared one would keep every schema that it ever saw.
    validate = (isOld ? new Ajv(options) : new Ajv2020(options)).compile(rest);
  } catch {
    return () => "the tool's schema cannot be used";
  }
  return (args) => {
    if (validate(args)) return undefined;
    const [error] = validate.errors ?? [];
    return `${error?.instancePath || "(arguments)"} ${error?.message ?? "does not fit"}`;
  };
}
