import { boundCost, derivingReads, readAlong, createLanguage, REPLACED_FUNCTIONS } from "./expression-language.ts";
import { chainsOf, checkNames, type NameProblem, type Names, readScope, hintFor } from "./check-names.ts";
import { EXPRESSION_LENGTH, EXPRESSION_STEPS, EXPRESSION_STEPS_HERE } from "./expression-limits.ts";
import { type Evaluated, type Expression, ExpressionFailed, type ExpressionScope, TakesLong, TurnUsed } from "./expression.ts";
import { toCelValue, Refused, toJson } from "./cel-value.ts";
import { setOwn } from "./set-own.ts";
import { isSyntaxNode, type SyntaxNode } from "./syntax-tree.ts";
import { turnBudget } from "./turn-budget.ts";

/** The expressions of one definition. An expression that occurs several times is parsed once. */
export interface Expressions {
  /** Parse an expression and check its names. Returns the expression or its problems. */
  compile(source: string, names: Names): { readonly expression: Expression } | { readonly problems: readonly NameProblem[] };
}

interface Parsed {
  readonly tree: SyntaxNode;
  readonly expression: Expression;
}

// Evaluations are synchronous, so only one runs at a time in a process. One budget is enough.
let left = 0;
const spend = (steps: number): void => {
  left -= steps;
  if (left < 0) throw new Refused(TOO_COSTLY);
};
/** The reason of an expression that exceeds its limit. */
export const TOO_COSTLY = "it takes too many steps: it iterates over long lists too often";
const language = createLanguage(spend);

export function createExpressions(): Expressions {
  const parsed = new Map<string, Parsed | readonly NameProblem[]>();
  return {
    compile(source, names) {
      const known = parsed.get(source) ?? parse(source);
      parsed.set(source, known);
      if (isProblems(known)) return { problems: known };
      const problems = checkNames(known.tree, names);
      return problems.length > 0 ? { problems } : { expression: known.expression };
    },
  };
}

/** The syntax tree of a valid expression. */
export function syntaxTree(source: string): SyntaxNode {
  return language.parse(source).ast as unknown as SyntaxNode;
}

function parse(source: string): Parsed | readonly NameProblem[] {
  if (source.trim() === "") return [{ offset: 0, message: "The expression is empty" }];
  if (source.length > EXPRESSION_LENGTH) {
    return [{ offset: 0, message: `An expression has at most ${EXPRESSION_LENGTH} characters` }];
  }
  try {
    const named = language.parse(source);
    // Names are checked in this tree, as written. A second tree is evaluated, in which functions are replaced.
    const tree = named.ast as unknown as SyntaxNode;
    const run = parseToRun(source);
    const { valid, error } = run.check();
    // The check of names reports unknown names, because it can suggest similar ones.
    if (!valid && error?.code !== "unknown_variable")
      return [{ offset: error?.range?.start ?? 0, message: wrong(error, source) }];
    const expression = toExpression(source, run, tree);
    const reads = derivingReads(tree);
    return { tree, expression: reads ? withDerived(expression, reads) : expression };
  } catch (cause) {
    const { range } = cause as { range?: { start: number } };
    return [{ offset: range?.start ?? 0, message: wrong(cause, source) }];
  }
}

type Run = (context: Record<string, unknown>) => unknown;

/** The tree that is evaluated, in which functions are replaced. */
function parseToRun(source: string) {
  const run = language.parse(source);
  boundCost(run.ast as unknown as SyntaxNode, spend);
  return run;
}

function toExpression(source: string, run: Run, tree: SyntaxNode): Expression {
  const names = namedNodes(tree);
  const compute = (scope: ExpressionScope): unknown => {
    const { results } = scope;
    const known = results
      ? (results.get(source) ?? computeHere(scope, results))
      : evaluateRun(run, contextOf(scope, names), EXPRESSION_STEPS);
    if ("value" in known) return known.value;
    throw new ExpressionFailed(source, known.reason);
  };
  const computeHere = (scope: ExpressionScope, results: Map<string, Evaluated>): Evaluated => {
    if (turnBudget.isUsed()) throw new TurnUsed();
    const begun = performance.now();
    const result = evaluateRun(run, contextOf(scope, names), EXPRESSION_STEPS_HERE);
    turnBudget.use(performance.now() - begun);
    if (left < 0) throw new TakesLong(source, readScope(tree, scope));
    results.set(source, result);
    return result;
  };
  const path = pathOf(tree);
  if (!path) return { source, evaluate: compute };
  return {
    source,
    evaluate(scope: ExpressionScope) {
      const value = follow(scope, path);
      // CEL decides whether a missing value is an error, and writes the message.
      return value === undefined ? compute(scope) : value;
    },
  };
}

function evaluateRun(run: Run, context: Record<string, unknown>, steps: number): Evaluated {
  left = steps;
  try {
    const value = run(context);
    // `||` and `exists` ignore errors of one side, but exceeding the budget must always fail.
    if (left < 0) throw new Refused(TOO_COSTLY);
    return { value: toJson(value) };
  } catch (cause) {
    return { reason: reason(cause) };
  }
}

/** Evaluates a valid expression with all the steps that it may take. For the thread of long evaluations. */
export function evaluateSource(source: string, scope: ExpressionScope): Evaluated {
  return evaluateRun(parseToRun(source), contextOf(scope, Object.keys(scope.nodes)), EXPRESSION_STEPS);
}

function namedNodes(tree: SyntaxNode): readonly string[] {
  const names = chainsOf(tree).flatMap(({ root, keys: [first] }) => (root === "nodes" && first ? first.name : []));
  return [...new Set(names)];
}

/** The same expression. It also reports the values that it read, and its result. */
function withDerived({ source, evaluate }: Expression, reads: readonly (readonly string[])[]): Expression {
  return {
    source,
    evaluate(scope) {
      const made = evaluate(scope);
      const { derived, results } = scope;
      if (!derived) return made;
      const begun = performance.now();
      derived(
        reads.map((path) => readAlong(scope, path)),
        made,
      );
      // A search for secrets in large values takes longer than most evaluations.
      if (results) turnBudget.use(performance.now() - begun);
      return made;
    },
  };
}

/** Most expressions only name one value. Direct access takes a tenth of the time, and the value is already JSON. */
function pathOf(tree: SyntaxNode): readonly string[] | undefined {
  const keys: string[] = [];
  let node = tree;
  while (node.op === ".") {
    const [next, key] = node.args as [SyntaxNode, string];
    keys.unshift(key);
    node = next;
  }
  return node.op === "id" ? [node.args as string, ...keys] : undefined;
}

function follow(scope: ExpressionScope, path: readonly string[]): unknown {
  let value: unknown = scope;
  for (const key of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

/** The values for the library. `nodes` has only those that the expression names: a run can have many. */
function contextOf(scope: ExpressionScope, names: readonly string[]): Record<string, unknown> {
  const nodes: Record<string, unknown> = {};
  for (const name of names) {
    if (!Object.hasOwn(scope.nodes, name)) continue;
    const fields = Object.entries(scope.nodes[name]!).map(([key, value]) => [key, toCelValue(value)]);
    setOwn(nodes, name, Object.fromEntries(fields));
  }
  return {
    parameters: toCelValue(scope.parameters ?? null),
    nodes,
    run: scope.run,
    secrets: scope.secrets,
    item: toCelValue(scope.item ?? null),
    index: scope.index ?? null,
    previous: toCelValue(scope.previous ?? null),
    gate: toCelValue(scope.gate ?? null),
    callback: toCelValue(scope.callback ?? null),
    failure: toCelValue(scope.failure ?? null),
    error: toCelValue(scope.error ?? null),
  };
}

function isProblems(parsed: Parsed | readonly NameProblem[]): parsed is readonly NameProblem[] {
  return Array.isArray(parsed);
}

/** Errors whose library message is safe, because it contains only types and the written expression. */
const TELLS_NO_VALUE = new Set([
  ...["no_such_overload", "no_matching_overload", "invalid_condition_type", "invalid_logical_operand"],
  ...["invalid_comprehension_range", "division_by_zero", "modulo_by_zero"],
]);
const SENTENCES: Readonly<Record<string, string>> = {
  index_out_of_bounds: "the list has no such index",
  index_out_of_range: "an index is out of range",
  numeric_overflow: "a number is too large",
  int_conversion_error: "this cannot be converted to a whole number",
  uint_conversion_error: "this cannot be converted to a whole number",
  double_conversion_error: "this cannot be converted to a number",
  bool_conversion_error: "this cannot be converted to true or false",
  invalid_timestamp: "this is not a timestamp",
  invalid_list_element_type: "the list must contain only texts",
  unknown_variable: "a name is not known",
};

/** Why an evaluation failed, without a value of the scope: messages are stored and shown. */
function reason(cause: unknown): string {
  if (cause instanceof Refused) return cause.message;
  const { code = "", summary = "", node } = cause as { code?: string; summary?: string; node?: unknown };
  if (TELLS_NO_VALUE.has(code)) return ownNames(summary);
  if (code === "no_such_key") {
    const key = isSyntaxNode(node) && node.op === "." ? (node.args as unknown[])[1] : undefined;
    return typeof key === "string" ? `there is no "${key}"` : "there is no such key";
  }
  return Object.hasOwn(SENTENCES, code) ? SENTENCES[code]! : "it cannot be evaluated";
}

/** The problem of a written expression. It quotes only the expression. */
function wrong(cause: unknown, source: string): string {
  const { summary } = cause as { summary?: string };
  const fault = ownNames(summary ?? "it cannot be parsed");
  return `Invalid CEL expression: ${fault}${hintFor(source, fault)}`;
}

/** Replaces the names of the substituted functions by the names that authors wrote. */
function ownNames(sentence: string): string {
  return Object.entries(REPLACED_FUNCTIONS).reduce((text, [own, replacing]) => text.replaceAll(replacing, own), sentence);
}
