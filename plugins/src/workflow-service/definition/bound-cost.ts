import { BOUNDED_FUNCTIONS } from "./expression-language.ts";
import { childrenOf, type Comprehension, type SyntaxNode } from "./syntax-tree.ts";

/** Operators whose time goes with the size of what they are given, and how many elements of a list they do in a step. */
const SIZED: Readonly<Record<string, number>> = { "+": 8, in: 32, "==": 32, "!=": 32, call: 8, rcall: 8 };

/**
 * Have a parsed expression tell what it costs, before it is checked or evaluated: `spend` throws when it was too much. The library itself
 * limits how long an expression is, but not what it does: `all` in `all` over a long list takes minutes, and sums of sums fill the memory.
 * Also lets the branches of `? :` differ in type, as JSON does.
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
    const bounded = BOUNDED_FUNCTIONS[node.args[0] as string];
    if (bounded !== undefined) (node.args as unknown[])[0] = bounded;
  }
  const isMacro = alternate !== undefined || node.meta.macro !== undefined;
  if (node.op === "?:") allowAnyBranches(node);
  // How long a list is, it knows.
  const isSize = Array.isArray(node.args) && node.args[0] === "size";
  const elements = isMacro || isSize ? undefined : SIZED[node.op];
  for (const child of childrenOf(node)) {
    if (elements !== undefined) chargeFor(child, elements, spend);
    boundCost(child, spend);
  }
}

function chargeFor(operand: SyntaxNode, elements: number, spend: (steps: number) => void): void {
  // A literal is as long as it is written; what a comprehension makes was paid for as it was made.
  if (operand.op === "value" || operand.meta.alternate !== undefined || operand.meta.macro !== undefined) return;
  const { evaluate } = operand.meta;
  operand.setMeta("evaluate", (evaluator, node, context) => {
    const value: unknown = evaluate(evaluator, node, context);
    if (typeof value === "string") spend(value.length >> 6);
    else if (Array.isArray(value)) spend(Math.floor(value.length / elements));
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
