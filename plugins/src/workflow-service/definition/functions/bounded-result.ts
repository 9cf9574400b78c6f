import { fieldsOf, isFields } from "../cel-value.ts";
import { FUNCTION_RESULT_CHARACTERS, FUNCTION_RESULT_ELEMENTS } from "../definition-limits.ts";
import { Refused } from "../refused.ts";
import type { Spend } from "./library-function.ts";

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
