import { createRequire } from "node:module";
import type * as ajv from "ajv/dist/2020.js";
import { RE2JS } from "re2js";

const load = createRequire(import.meta.url);
const OPTIONS: ajv.Options = {
  strict: false,
  validateFormats: false,
  logger: false,
  // A schema that many references lead to is compiled once. The time of passes over what was compiled grows with the square of its size.
  inlineRefs: false,
  code: { optimize: false, regExp: Object.assign(toPattern, { code: "" }) },
};

/**
 * Reads JSON Schemas of definitions. Patterns are of RE2, as in expressions: what they are matched with comes from strangers, and those of
 * JavaScript can take for ever.
 */
export function createAjv(more: Pick<ajv.Options, "allErrors" | "meta" | "useDefaults" | "validateSchema"> = {}): ajv.Ajv2020 {
  // It takes its time to load: services whose definitions have no schemas do not wait for it.
  const { Ajv2020 } = load("ajv/dist/2020.js") as typeof ajv;
  return new Ajv2020({ ...OPTIONS, ...more });
}

/** ajv tells patterns apart by what they are as text. */
function toPattern(source: string): RegExp {
  const compiled = RE2JS.compile(source);
  const pattern = { test: (text: string) => compiled.matcher(text).find(), toString: () => `/${source}/` };
  // All that ajv asks of one.
  return pattern as unknown as RegExp;
}
