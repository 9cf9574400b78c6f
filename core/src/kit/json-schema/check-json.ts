import type { ValidateFunction } from "ajv";
import { type JsonSchema, isTooLarge } from "./bound-schema.ts";
import { type CompileOptions, compileSchema, SchemaInvalid } from "./compile-schema.ts";
import { withoutUncheckable } from "./uncheckable-patterns.ts";

/** One violation of a schema. It contains no part of the value. */
export interface SchemaFault {
  /** JSON pointer to the value that violates the schema; empty for the whole value. */
  readonly at: string;
  /** The missing or the unexpected member of that value. */
  readonly member?: string | undefined;
  readonly message: string;
}

const MOST_TOLD = 5;

/** Violations as one text, for the author of the value. `whole` names the value. It contains no part of the value. */
export function faultText(faults: readonly SchemaFault[], whole: string): string {
  return faults
    .slice(0, MOST_TOLD)
    .map(({ at, message }) => `${at || whole}: ${message}`)
    .join("; ");
}

/** A value to be checked. */
export interface CheckJob extends CompileOptions {
  /** The schema, as JSON. */
  readonly schema: string;
  /** Whether the author of the schema checks the values again, so that patterns that RE2 lacks are left out. */
  readonly isForeign?: boolean | undefined;
  /** The value, as JSON. Undefined: only the schema is checked. */
  readonly value: string | undefined;
}

/** The result of a check. */
export type CheckResult =
  /** `value` is JSON, with the schema's defaults. Undefined if the value is unchanged. `unchecked`: the patterns that were left out. */
  | { readonly value?: string | undefined; readonly unchecked: readonly string[] }
  | { readonly faults: readonly SchemaFault[] }
  /** The schema cannot be used: the reason, which quotes only the schema. */
  | { readonly unusable: string };

/** Maximum values of a schema. */
const SCHEMA_VALUES = 20_000;
const MOST_FAULTS = 20;
/** About 1,200 schemas of ordinary tools, or 180 of the largest that the event loop compiles. They take about 25 and 110 MB. */
const KEPT_CHARACTERS = 1_000_000;
/** What a compiled schema costs beside its keywords, in the same measure. */
const CHARACTERS_OF_EACH = 500;

interface Compiled {
  readonly validate: ValidateFunction;
  readonly unchecked: readonly string[];
  readonly fills: boolean;
}

/** The one that was used last is the last. */
const compiled = new Map<string, Compiled | { readonly unusable: string }>();
let keptCharacters = 0;

/** Checks a value now, in this thread. Each schema is compiled once. */
export function checkJson(job: CheckJob): CheckResult {
  const key = [job.allFaults, job.fillsDefaults, job.isForeign, job.schema].join(" ");
  const known = compiled.get(key) ?? compile(job);
  keep(key, known);
  if ("unusable" in known) return known;
  const { validate, unchecked, fills } = known;
  if (job.value === undefined) return { unchecked };
  const value = JSON.parse(job.value) as unknown;
  if (holds(validate, value)) return { ...(fills && { value: JSON.stringify(value) }), unchecked };
  const faults = (validate.errors ?? []).slice(0, MOST_FAULTS).map(({ instancePath, message = "does not fit", params }) => {
    const { missingProperty, additionalProperty } = params as { missingProperty?: string; additionalProperty?: string };
    return { at: instancePath, member: missingProperty ?? additionalProperty, message };
  });
  validate.errors = null;
  return { faults };
}

function keep(key: string, schema: Compiled | { readonly unusable: string }): void {
  const forget = (each: string): void => {
    if (compiled.delete(each)) keptCharacters -= each.length + CHARACTERS_OF_EACH;
  };
  forget(key);
  compiled.set(key, schema);
  keptCharacters += key.length + CHARACTERS_OF_EACH;
  for (const oldest of compiled.keys()) {
    if (keptCharacters <= KEPT_CHARACTERS || oldest === key) break;
    forget(oldest);
  }
}

function holds(validate: ValidateFunction, value: unknown): boolean {
  try {
    return validate(value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // A schema that refers to itself without end.
    validate.errors = [{ instancePath: "", schemaPath: "", keyword: "", params: {}, message: TOO_LONG }];
    return false;
  }
}

/** Maximum processor time of checking one value, in milliseconds. */
export const CHECK_MS = 1000;
/** The violation of a value whose check takes longer. */
export const TOO_LONG = `takes more than ${CHECK_MS / 1000} s of processor time to be checked against the schema`;

function compile({ schema: text, isForeign, ...options }: CheckJob): Compiled | { readonly unusable: string } {
  const schema = JSON.parse(text) as JsonSchema;
  if (isTooLarge(schema, SCHEMA_VALUES)) return { unusable: TOO_LARGE };
  try {
    const { schema: checkable, unchecked } = isForeign ? withoutUncheckable(schema) : { schema, unchecked: [] };
    return {
      validate: compileSchema(checkable, options),
      unchecked,
      fills: options.fillsDefaults === true && text.includes('"default":'),
    };
  } catch (error) {
    if (error instanceof SchemaInvalid) return { unusable: error.message };
    if (error instanceof RangeError) return { unusable: TOO_LARGE };
    throw error;
  }
}

const TOO_LARGE = `A JSON Schema has at most ${SCHEMA_VALUES} values and 100 levels`;
