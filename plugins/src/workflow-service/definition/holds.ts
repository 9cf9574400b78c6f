import { kindInWords } from "./check-shape.ts";
import { type Expression, ExpressionFailed, type ExpressionScope } from "./expression.ts";

/** Whether a condition is true. Throws ExpressionFailed if it cannot be evaluated, or is neither true nor false. */
export function holds(condition: Expression, scope: ExpressionScope): boolean {
  const value = condition.evaluate(scope);
  if (typeof value === "boolean") return value;
  const found = value === null ? "null" : kindInWords(value);
  throw new ExpressionFailed(condition.source, `expected true or false, found ${found}`);
}
