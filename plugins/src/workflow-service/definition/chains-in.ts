import { type Chain, chainsOf } from "../expressions/check-names.ts";
import { syntaxTree } from "../expressions/create-expressions.ts";
import { EXPRESSION_LENGTH } from "../expressions/expression-limits.ts";
import { expressionsOfTemplate } from "./compile-template.ts";

/** What the expressions of a template read. Those that are too long or invalid are left out: they are reported as such. */
export function chainsIn(template: unknown): readonly Chain[] {
  return [...expressionsOfTemplate(template, [])].flatMap(({ source }) => {
    if (source.length > EXPRESSION_LENGTH) return [];
    try {
      return chainsOf(syntaxTree(source));
    } catch {
      return [];
    }
  });
}
