import { createRequire } from "node:module";
import type * as ajvDraft7 from "ajv";
import type { Ajv, Options, ValidateFunction } from "ajv";
import type * as ajv2020 from "ajv/dist/2020.js";
import type * as re2js from "re2js";
import type { JsonSchema } from "./bound-schema.ts";

/** How a schema is compiled. */
export interface CompileOptions {
  /** Whether all violations are found, or only the first one. Default: false. */
  readonly allFaults?: boolean | undefined;
  /** Whether checking writes the schema's defaults into the value. Default: false. */
  readonly fillsDefaults?: boolean | undefined;
}

// Both libraries load slowly, so services without schemas do not load them.
const load = createRequire(import.meta.url);
const OPTIONS: Options = {
  // Schemas are written for many readers: keywords and formats that ajv does not know are ignored.
  strict: false,
  validateFormats: false,
  logger: false,
  // A schema with many references to it is compiled only once. Optimization passes over the generated code are quadratic in its size.
  inlineRefs: false,
  code: { optimize: false, regExp: Object.assign(toPattern, { code: "" }) },
};

/** Compile the metaschemas once, because that takes longer than most schemas. They do not keep the checked schemas. */
const metaschemas = new Map<Dialect, Ajv>();
type Dialect = "draft-07" | "2020-12";

/**
 * Compiles a JSON Schema: draft 7 if `$schema` names a draft from 4 to 7, otherwise 2020-12. Patterns use RE2, because the matched values come
 * from untrusted callers, and JavaScript's patterns can take unlimited time. References can only point into the same schema. Throws for
 * invalid schemas.
 */
export function compileSchema(schema: JsonSchema, { allFaults, fillsDefaults }: CompileOptions = {}): ValidateFunction {
  const { $schema, ...rest } = schema;
  const dialect = /draft-0[4-7]/.test(String($schema)) ? "draft-07" : "2020-12";
  const fault = shapeFault(rest, dialect);
  if (fault !== undefined) throw new SchemaInvalid(fault);
  // One instance per schema, because a shared instance would keep all schemas in memory.
  const ajv = open(dialect, { allErrors: allFaults, useDefaults: fillsDefaults, meta: false, validateSchema: false });
  let validate: ValidateFunction;
  try {
    validate = ajv.compile(rest);
  } catch (cause) {
    throw new SchemaInvalid(compileFault(cause), { cause });
  }
  // It would return a promise, which would count as success.
  if ("$async" in validate) throw new SchemaInvalid("`$async` is not part of JSON Schema");
  return validate;
}

/** Thrown for a schema that cannot be compiled. The message quotes only the schema. */
export class SchemaInvalid extends Error {
  override readonly name = "SchemaInvalid";
}

function shapeFault(schema: JsonSchema, dialect: Dialect): string | undefined {
  const ajv = metaschemas.get(dialect) ?? open(dialect, {});
  metaschemas.set(dialect, ajv);
  if (ajv.validateSchema(schema)) return undefined;
  const [error] = ajv.errors ?? [];
  return `Invalid JSON Schema: ${error?.instancePath || "the schema"} ${error?.message ?? "is wrong"}`;
}

function compileFault(cause: unknown): string {
  const { message = "", missingRef } = cause as { message?: string; missingRef?: string };
  return missingRef !== undefined || /resolve reference|MissingRef/i.test(message)
    ? "A reference of this JSON Schema has no target: `$ref` can only refer to the same schema"
    : "This JSON Schema cannot be used";
}

function open(dialect: Dialect, more: Options): Ajv {
  const Constructor =
    dialect === "draft-07" ? (load("ajv") as typeof ajvDraft7).Ajv : (load("ajv/dist/2020.js") as typeof ajv2020).Ajv2020;
  const ajv = new Constructor({ ...OPTIONS, ...more });
  // ajv compares each element with all before it.
  ajv.removeKeyword("uniqueItems");
  ajv.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    validate: isUnique,
    error: { message: DUPLICATES },
  });
  return ajv;
}

const DUPLICATES = "must NOT have duplicate items";

function isUnique(mustBe: boolean, list: readonly unknown[]): boolean {
  return !mustBe || new Set(list.map(canonicalText)).size === list.length;
}

/** Whether RE2 has all that a pattern uses. */
export function isPattern(source: string): boolean {
  try {
    toPattern(source);
    return true;
  } catch {
    return false;
  }
}

/** ajv distinguishes patterns by their text. */
function toPattern(source: string): RegExp {
  const { RE2JS } = load("re2js") as typeof re2js;
  // JavaScript's spelling of characters and groups.
  const compiled = RE2JS.compile(RE2JS.translateRegExp(source));
  const pattern = { test: (text: string) => compiled.matcher(text).find(), toString: () => `/${source}/` };
  // ajv uses only this method.
  return pattern as unknown as RegExp;
}

/** A text that two values of JSON share exactly if they are equal: objects with the same members in any order. */
export function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) => {
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}
