import { REPLACED_FUNCTIONS } from "./expression-language.ts";
import { Refused } from "./refused.ts";
import { childrenOf, type Comprehension, type SyntaxNode } from "./syntax-tree.ts";

/** Operators whose time grows with the size of their operands, and how many elements of a list they process in one step. */
const SIZED: Readonly<Record<string, number>> = { "+": 8, in: 32, "==": 32, "!=": 32, call: 8, rcall: 8 };

/**
 * Makes a parsed expression report its cost during evaluation. `spend` throws if the cost is too high. Call it before the expression is
 * checked or evaluated. The library limits only the length of an expression: `all` in `all` over a long list takes minutes, and sums of
 * sums fill the memory. It also allows branches of `? :` with different types, as JSON has them.
 */
export function boundCost(node: SyntaxNode, spend: (steps: number) => void): void {
  const { alternate } = node.meta;
  if (alternate?.op === "comprehension") {
    const turns = alternate.args as Comprehension;
    const { condition } = turns;
    turns.condition = (soFar) => {
      spend(1);
      return condition ? condition(soFar) : true;
    };
  }
  if ((node.op === "call" || node.op === "rcall") && Array.isArray(node.args)) {
    const name = node.args[0] as string;
    if (Object.hasOwn(REPLACED_FUNCTIONS, name)) (node.args as unknown[])[0] = REPLACED_FUNCTIONS[name];
  }
  const isMacro = alternate !== undefined || node.meta.macro !== undefined;
  if (node.op === "?:") allowAnyBranches(node);
  if (node.op === "map") for (const [key] of node.args as [SyntaxNode, SyntaxNode][]) refuseLostKeys(key);
  // A list knows its size, so `size` costs nothing.
  const isSize = Array.isArray(node.args) && node.args[0] === "size";
  const elements = isMacro || isSize ? undefined : SIZED[node.op];
  for (const child of childrenOf(node)) {
    if (elements !== undefined) chargeFor(child, elements, spend);
    boundCost(child, spend);
  }
}

function chargeFor(operand: SyntaxNode, elements: number, spend: (steps: number) => void): void {
  // Literals are short, because the expression is. The result of a comprehension was charged when it was made.
  if (operand.op === "value" || operand.meta.alternate !== undefined || operand.meta.macro !== undefined) return;
  const { evaluate } = operand.meta;
  operand.setMeta("evaluate", (evaluator, node, context) => {
    const value: unknown = evaluate(evaluator, node, context);
    if (typeof value === "string") spend(value.length >> 6);
    else if (Array.isArray(value)) spend(Math.floor(value.length / elements));
    return value;
  });
}

/** The library silently leaves out these keys of a map that an expression makes. */
export const LOST_KEYS: ReadonlySet<unknown> = new Set(["__proto__", "constructor", "prototype"]);

/** The sentence about a key of `LOST_KEYS`. */
export const lostKey = (key: unknown): string => `An expression cannot make a key "${String(key)}"`;

function refuseLostKeys(key: SyntaxNode): void {
  const { evaluate } = key.meta;
  key.setMeta("evaluate", (evaluator, node, context) => {
    const value: unknown = evaluate(evaluator, node, context);
    if (LOST_KEYS.has(value)) throw new Refused(lostKey(value));
    return value;
  });
}

function allowAnyBranches(ternary: SyntaxNode): void {
  const { check } = ternary.meta;
  ternary.setMeta("check", (checker, node, context) => {
    try {
      return check(checker, node, context);
    } catch (cause) {
      const { code, node: at } = cause as { code?: string; node?: unknown };
      if (code === "incompatible_ternary_branches" && at === ternary) return checker.getType("dyn");
      throw cause;
    }
  });
}
