import { fieldsOf, isFields, Refused } from "./cel-value.ts";
import { FUNCTION_RESULT_CHARACTERS, FUNCTION_RESULT_ELEMENTS } from "./expression-limits.ts";

/** Reports the cost of an evaluation. Throws Refused if the expression takes too many steps. */
export type Spend = (steps: number) => void;

/** One function of expressions: its overloads, and its documentation. */
export interface LibraryFunction {
  /** How a call is written: `TEXT.replace(OLD, NEW)`. */
  readonly usage: string;
  /** One or two sentences for authors of definitions. */
  readonly summary: string;
  /** An expression, and its value as JSON. A test evaluates it. */
  readonly example: readonly [expression: string, value: unknown];
  /**
   * Implementations by signature. A function of a namespace, such as `math.abs`, is declared on the namespace's type (`MathNamespace`) and
   * gets the namespace as its first argument. Functions that CEL defines have no overloads here.
   */
  overloads?(spend: Spend): Readonly<Record<string, (...values: any[]) => unknown>>;
}

/** Functions that are documented under one heading. */
export interface FunctionGroup {
  readonly title: string;
  readonly functions: readonly LibraryFunction[];
}

/** Charge for a text before it is made. Throws Refused if it would be too long. */
export function chargeForText(characters: number, spend: Spend): void {
  if (characters > FUNCTION_RESULT_CHARACTERS) {
    throw new Refused(`the result of a function has at most ${FUNCTION_RESULT_CHARACTERS} characters`);
  }
  spend(Math.ceil(characters / 64));
}

/** Charge for a list before it is made. Throws Refused if it would be too long. */
export function chargeForList(elements: number, spend: Spend): void {
  if (elements > FUNCTION_RESULT_ELEMENTS) {
    throw new Refused(`the result of a function has at most ${FUNCTION_RESULT_ELEMENTS} elements`);
  }
  spend(Math.ceil(elements / 8));
}

/** Charge for reading a value with everything inside it. */
export function chargeForValue(value: unknown, spend: Spend): void {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string") spend(1 + (next.length >> 6));
    else spend(1);
    if (Array.isArray(next)) for (const each of next) open.push(each);
    else if (isFields(next)) {
      for (const [key, each] of fieldsOf(next)) {
        spend(1 + (key.length >> 6));
        open.push(each);
      }
    }
  }
}
