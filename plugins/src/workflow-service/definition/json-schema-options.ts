import type { Options } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";

/**
 * How JSON Schemas of definitions are read. Patterns are of RE2, as in expressions: what they are matched with comes from strangers, and
 * those of JavaScript can take for ever.
 */
export const JSON_SCHEMA_OPTIONS: Options = {
  strict: false,
  validateFormats: false,
  logger: false,
  code: { regExp: Object.assign(toPattern, { code: "" }) },
};

/** ajv tells patterns apart by what they are as text. */
function toPattern(source: string): RegExp {
  const compiled = RE2JS.compile(source);
  const pattern = { test: (text: string) => compiled.matcher(text).find(), toString: () => `/${source}/` };
  // All that ajv asks of one.
  return pattern as unknown as RegExp;
}
