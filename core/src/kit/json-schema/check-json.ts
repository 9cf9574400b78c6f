import { createContext, Script } from "node:vm";
import type { ValidateFunction } from "ajv";
import { isTooLarge, type JsonSchema, patternWeight, SCHEMA_LIMITS, SCHEMA_PATTERN_LENGTH } from "./bound-schema.ts";
import { type CompileOptions, compileSchema, isPattern, SchemaInvalid } from "./compile-schema.ts";
import { isRecord } from "../json-object.ts";

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

const around = createContext({ check: undefined as (() => CheckResult) | undefined });
const call = new Script("check()");

/**
 * Checks a value on the event loop, for callers that cannot wait, such as the reading of a definition. Undefined if the check takes more than
 * `ms` of processor time. Only the timeout of `node:vm` can stop synchronous code. It measures elapsed time, so a process that was suspended or
 * has little processor time gets more time.
 */
export function checkJsonNow(job: CheckJob, ms: number): CheckResult | undefined {
  for (let timeout = Math.max(1, Math.round(ms)); ; timeout *= 2) {
    const before = processorMs();
    around["check"] = () => checkJson(job);
    try {
      return call.runInContext(around, { timeout }) as CheckResult;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
      // The timer may fire slightly too early.
      if (processorMs() - before >= ms * 0.9) return undefined;
    } finally {
      around["check"] = undefined;
    }
  }
}

/** Processor time of this thread. Before Node.js 23.9 it is that of the process, which is larger, so no check takes longer than the limit. */
function processorMs(): number {
  const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
  return (user + system) / 1000;
}

/** A schema without the patterns that cannot be checked here, and these patterns. */
export interface CheckableSchema {
  readonly schema: JsonSchema;
  readonly unchecked: readonly string[];
}

/** Without a pattern, a value could match these although it should not, and be refused. */
const NEGATING = new Set(["else", "if", "maxContains", "not", "oneOf", "then", "unevaluatedItems", "unevaluatedProperties"]);
/** Their values are data. */
const DATA = new Set(["const", "default", "enum", "examples"]);

/**
 * Leaves out the patterns that RE2 lacks or that are too long, and the keywords that would refuse correct values without them. The schema's
 * author checks these: a server of tools checks its arguments anyway.
 */
export function withoutUncheckable(schema: JsonSchema): CheckableSchema {
  const unchecked = new Set<string>();
  let weight = 0;
  const isUnchecked = (source: string): boolean => {
    weight += patternWeight(source);
    const isBad = source.length > SCHEMA_PATTERN_LENGTH || weight > SCHEMA_LIMITS.patterns || !isPattern(source);
    if (isBad) unchecked.add(source);
    return isBad;
  };
  forEachPattern(schema, isUnchecked);
  return unchecked.size === 0
    ? { schema, unchecked: [] }
    : { schema: weaken(schema, unchecked) as JsonSchema, unchecked: [...unchecked] };
}

function forEachPattern(value: unknown, tell: (source: string) => void): void {
  if (typeof value !== "object" || value === null) return;
  for (const [key, each] of Object.entries(value)) {
    if (key === "pattern" && typeof each === "string") tell(each);
    if (key === "patternProperties" && isRecord(each)) for (const source of Object.keys(each)) tell(source);
    if (!DATA.has(key)) forEachPattern(each, tell);
  }
}

function weaken(value: unknown, unchecked: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) return value.map((each) => weaken(each, unchecked));
  if (!isRecord(value)) return value;
  const named = isRecord(value["patternProperties"]) ? Object.keys(value["patternProperties"]) : [];
  const hasUnknownNames = named.some((source) => unchecked.has(source));
  const kept = Object.entries(value).filter(([key, each]) => {
    if (NEGATING.has(key)) return false;
    if (key === "additionalProperties") return !hasUnknownNames;
    return key !== "pattern" || typeof each !== "string" || !unchecked.has(each);
  });
  return Object.fromEntries(
    kept.map(([key, each]) => {
      if (DATA.has(key)) return [key, each];
      if (!NAMED.has(key) || !isRecord(each)) return [key, weaken(each, unchecked)];
      // The names of properties are no keywords.
      const members = Object.entries(each).filter(([name]) => key !== "patternProperties" || !unchecked.has(name));
      return [key, Object.fromEntries(members.map(([name, schema]) => [name, weaken(schema, unchecked)]))];
    }),
  );
}

const NAMED = new Set(["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]);
