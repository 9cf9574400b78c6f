import type { NameProblem } from "./check-names.ts";
import type { Path } from "./definition-problem.ts";
import type { Expression, ExpressionScope, Template } from "./expression.ts";
import { setOwn } from "./set-own.ts";

/** A problem of a template, with its position in the text at `path`. */
export interface TemplateProblem extends NameProblem {
  readonly path: Path;
}

export type CompileExpression = (
  source: string,
) => { readonly expression: Expression } | { readonly problems: readonly NameProblem[] };

type Fill = (scope: ExpressionScope) => unknown;

/** Make a template of any JSON value. All problems are reported. If there are any, the template must not be used. */
export function compileTemplate(
  value: unknown,
  compile: CompileExpression,
  tell: (problem: TemplateProblem) => void,
  path: Path = [],
): Template {
  const expressions: Expression[] = [];
  const compileNext: CompileExpression = (source) => {
    const compiled = compile(source);
    if ("expression" in compiled) expressions.push(compiled.expression);
    return compiled;
  };
  const fill = filler(value, compileNext, tell, path);
  return { expressions, fill: fill ?? (() => value) };
}

/** Whether any text in a value contains an expression. */
export function hasTemplate(value: unknown): boolean {
  if (typeof value === "string") return value.includes("${{");
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some(hasTemplate);
}

/** Undefined if the value contains no expression. Such a value is used directly and not copied for each evaluation. */
function filler(
  value: unknown,
  compile: CompileExpression,
  tell: (problem: TemplateProblem) => void,
  path: Path,
): Fill | undefined {
  if (typeof value === "string") return text(value, compile, (problem) => tell({ ...problem, path }));
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    const fills = value.map((each, index) => filler(each, compile, tell, [...path, index]));
    if (fills.every((each) => each === undefined)) return undefined;
    return (scope) => fills.map((fill, index) => (fill ? fill(scope) : value[index]));
  }
  const fills = Object.entries(value).map(([key, each]) => ({ key, each, fill: filler(each, compile, tell, [...path, key]) }));
  if (fills.every(({ fill }) => fill === undefined)) return undefined;
  return (scope) => {
    const filled: Record<string, unknown> = {};
    for (const { key, each, fill } of fills) setOwn(filled, key, fill ? fill(scope) : each);
    return filled;
  };
}

function text(value: string, compile: CompileExpression, tell: (problem: NameProblem) => void): Fill | undefined {
  const pieces = piecesOf(value);
  if (!pieces) {
    tell({ offset: value.lastIndexOf("${{"), message: "This `${{` is not closed by `}}`; a literal one is written `$${{`" });
    return undefined;
  }
  const compiled = pieces.map((piece) => (typeof piece === "string" ? piece : compileAt(piece, compile, tell)));
  const [only] = compiled;
  if (compiled.length === 0) return undefined;
  if (compiled.length === 1 && only !== undefined) return typeof only === "string" ? () => only : (scope) => only.evaluate(scope);
  return (scope) => {
    let filled = "";
    for (const piece of compiled) filled += typeof piece === "string" ? piece : toText(piece?.evaluate(scope));
    return filled;
  };
}

function compileAt(
  { source, offset }: Piece,
  compile: CompileExpression,
  tell: (problem: NameProblem) => void,
): Expression | undefined {
  const compiled = compile(source);
  if ("expression" in compiled) return compiled.expression;
  for (const problem of compiled.problems) tell({ ...problem, offset: offset + problem.offset });
  return undefined;
}

function toText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === null || value === undefined ? "" : JSON.stringify(value);
}

interface Piece {
  readonly source: string;
  /** Where the expression begins in the text. */
  readonly offset: number;
}

/** The literal texts and expressions of a text, in order. Undefined if an expression is not closed. Empty if the text has no expression. */
export function piecesOf(value: string): readonly (string | Piece)[] | undefined {
  if (!value.includes("${{")) return [];
  const pieces: (string | Piece)[] = [];
  let literal = "";
  let from = 0;
  for (let open = value.indexOf("${{"); open >= 0; open = value.indexOf("${{", from)) {
    if (open > from && value[open - 1] === "$") {
      literal += value.slice(from, open - 1) + "${{";
      from = open + 3;
      continue;
    }
    const close = closeOf(value, open + 3);
    if (close === undefined) return undefined;
    literal += value.slice(from, open);
    if (literal !== "") pieces.push(literal);
    literal = "";
    pieces.push({ source: value.slice(open + 3, close), offset: open + 3 });
    from = close + 2;
  }
  literal += value.slice(from);
  if (literal !== "") pieces.push(literal);
  return pieces;
}

/** The position of the `}}` that ends an expression. Text and map literals inside the expression are skipped. */
function closeOf(value: string, from: number): number | undefined {
  let depth = 0;
  for (let at = from; at < value.length; at++) {
    const character = value[at]!;
    if (character === '"' || character === "'") {
      const end = endOfText(value, at);
      if (end === undefined) return undefined;
      at = end;
    } else if (character === "{") depth++;
    else if (character === "}" && depth > 0) depth--;
    else if (character === "}" && value[at + 1] === "}") return at;
  }
  return undefined;
}

/** The end of a CEL string that begins with a quote: the last character of its closing quotes. */
function endOfText(value: string, open: number): number | undefined {
  const quote = value[open]!;
  const triple = quote.repeat(3);
  const closing = value.startsWith(triple, open) ? triple : quote;
  for (let at = open + closing.length; at < value.length; at++) {
    // The library treats a backslash before a quote as an escape in raw strings, too.
    if (value[at] === "\\") at++;
    else if (value.startsWith(closing, at)) return at + closing.length - 1;
  }
  return undefined;
}
