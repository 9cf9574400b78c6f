import { createRequire } from "node:module";
import type * as ajv from "ajv/dist/2020.js";
import { RE2JS } from "re2js";

const load = createRequire(import.meta.url);
const OPTIONS: ajv.Options = {
  strict: false,
  validateFormats: false,
  logger: false,
  // A schema with many references to it is compiled only once. Optimization passes over the generated code are quadratic in its size.
  inlineRefs: false,
  code: { optimize: false, regExp: Object.assign(toPattern, { code: "" }) },
};

/**
 * Compiles the JSON Schemas of definitions. Patterns use RE2, as in expressions. The matched values come from untrusted callers, and
 * JavaScript's patterns can take unlimited time.
 */
export function createAjv(more: Pick<ajv.Options, "allErrors" | "meta" | "useDefaults" | "validateSchema"> = {}): ajv.Ajv2020 {
  // The library loads slowly, so services whose definitions have no schemas do not load it.
  const { Ajv2020 } = load("ajv/dist/2020.js") as typeof ajv;
  return new Ajv2020({ ...OPTIONS, ...more });
}

/** ajv distinguishes patterns by their text. */
function toPattern(source: string): RegExp {
  const compiled = RE2JS.compile(source);
  const pattern = { test: (text: string) => compiled.matcher(text).find(), toString: () => `/${source}/` };
  // ajv uses only this method.
  return pattern as unknown as RegExp;
}
