import type { ports } from "@portico/core";
import type { SchemaFaultPlace } from "@portico/core/kit";
import { isRecord } from "@portico/core/contract";
import type { NameProblem, Names } from "../expressions/check-names.ts";
import type { Path, DefinitionProblem } from "./definition-problem.ts";
import type { Expression, ExpressionScope, Template } from "../expressions/expression.ts";
import { setOwn } from "../expressions/set-own.ts";
import type { Expressions } from "../expressions/create-expressions.ts";
import type { Source } from "./read-source.ts";

/** A problem of a template, with its position in the text at `path`. */
interface TemplateProblem extends NameProblem {
  readonly path: Path;
}

type CompileExpression = (source: string) => { readonly expression: Expression } | { readonly problems: readonly NameProblem[] };

type Fill = (scope: ExpressionScope) => unknown;

/** Make a template of any JSON value. All problems are reported. If there are any, the template must not be used. */
export function compileTemplate(
  value: unknown,
  compile: CompileExpression,
  report: (problem: TemplateProblem) => void,
  path: Path = [],
): Template {
  const expressions: Expression[] = [];
  const compileNext: CompileExpression = (source) => {
    const compiled = compile(source);
    if ("expression" in compiled) expressions.push(compiled.expression);
    return compiled;
  };
  const fill = filler(value, compileNext, report, path);
  return { expressions, fill: fill ?? (() => value) };
}

/** Whether any text in a value contains an expression. */
export function hasTemplate(value: unknown): boolean {
  if (typeof value === "string") return value.includes("${{");
  if (typeof value !== "object" || value === null) return false;
  return Object.values(value).some(hasTemplate);
}

/** The context of compiling one definition, and the receiver of its problems. */
export interface Compiling {
  readonly source: Source;
  readonly types: ReadonlyMap<string, ports.NodeRules>;
  readonly secrets: ReadonlySet<string>;
  readonly expressions: Expressions;
  /** Why a JSON Schema cannot be used. One reason is that all schemas of the definition together take too long. */
  schemaFault(schema: Readonly<Record<string, unknown>>): SchemaFaultPlace | undefined;
  report(problem: DefinitionProblem): void;
  /** Counts one node; false if there are too many. */
  count(): boolean;
}

/** A template of any JSON at a path. */
export function compileValue(value: unknown, path: Path, names: Names, by: Compiling): Template {
  return compileTemplate(
    value,
    (source) => by.expressions.compile(source, names),
    (problem) => by.report(by.source.textProblem([...path, ...problem.path], problem.offset, problem.message)),
  );
}

/** CEL as it is, or in `${{ }}`. */
export function compileExpression(text: string, path: Path, names: Names, by: Compiling): Expression | undefined {
  const wrapped = /^(\s*\$\{\{)([^]*)\}\}\s*$/.exec(text);
  const compiled = by.expressions.compile(wrapped?.[2] ?? text, names);
  if ("expression" in compiled) return compiled.expression;
  const offset = wrapped?.[1]?.length ?? 0;
  for (const problem of compiled.problems) by.report(by.source.textProblem(path, offset + problem.offset, problem.message));
  return undefined;
}

/** One expression of a document, and its position. */
export interface WrittenExpression {
  readonly source: string;
  readonly path: Path;
  /** Character of the text at the path. */
  readonly offset: number;
}

/** The expressions of nodes, as they are written. */
export function* expressionsOfNodes(
  nodes: unknown,
  path: Path,
  types: ReadonlyMap<string, ports.NodeRules>,
): Generator<WrittenExpression, void> {
  for (const [id, node] of entriesOf(nodes)) {
    if (!isRecord(node)) continue;
    const at = [...path, id];
    // The word is no expression.
    if (node["if"] !== "always") yield* bare(node["if"], [...at, "if"]);
    if (isRecord(node["retry"])) yield* bare(node["retry"]["if"], [...at, "retry", "if"]);
    const keys = types.get(String(node["type"]))?.keys ?? {};
    for (const [key, value] of entriesOf(node["with"])) {
      const below = [...at, "with", key];
      const law = Object.hasOwn(keys, key) ? keys[key] : undefined;
      if (law === "graph") yield* expressionsOfNodes(value, below, types);
      else if (law === "expressions") for (const [name, each] of entriesOf(value)) yield* bare(each, [...below, name]);
      else if (law === "expression" && typeof value === "string") yield* bare(value, below);
      else if (law !== "verbatim") yield* expressionsOfTemplate(value, below);
    }
  }
}

/** Those in `${{ }}` anywhere in a value. */
export function* expressionsOfTemplate(value: unknown, path: Path): Generator<WrittenExpression, void> {
  if (typeof value === "string") {
    for (const piece of piecesOf(value) ?? []) if (typeof piece !== "string") yield { ...piece, path };
  } else if (Array.isArray(value)) {
    for (const [index, each] of value.entries()) yield* expressionsOfTemplate(each, [...path, index]);
  } else {
    for (const [key, each] of entriesOf(value)) yield* expressionsOfTemplate(each, [...path, key]);
  }
}

/** Undefined if the value contains no expression. Such a value is used directly and not copied for each evaluation. */
function filler(
  value: unknown,
  compile: CompileExpression,
  report: (problem: TemplateProblem) => void,
  path: Path,
): Fill | undefined {
  if (typeof value === "string") return text(value, compile, (problem) => report({ ...problem, path }));
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    const fills = value.map((each, index) => filler(each, compile, report, [...path, index]));
    if (fills.every((each) => each === undefined)) return undefined;
    return (scope) => fills.map((fill, index) => (fill ? fill(scope) : value[index]));
  }
  const fills = Object.entries(value).map(([key, each]) => ({ key, each, fill: filler(each, compile, report, [...path, key]) }));
  if (fills.every(({ fill }) => fill === undefined)) return undefined;
  return (scope) => {
    const filled: Record<string, unknown> = {};
    for (const { key, each, fill } of fills) setOwn(filled, key, fill ? fill(scope) : each);
    return filled;
  };
}

function text(value: string, compile: CompileExpression, report: (problem: NameProblem) => void): Fill | undefined {
  const pieces = piecesOf(value);
  if (!pieces) {
    report({ offset: value.lastIndexOf("${{"), message: "This `${{` is not closed by `}}`; a literal one is written `$${{`" });
    return undefined;
  }
  const compiled = pieces.map((piece) => (typeof piece === "string" ? piece : compileAt(piece, compile, report)));
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
  report: (problem: NameProblem) => void,
): Expression | undefined {
  const compiled = compile(source);
  if ("expression" in compiled) return compiled.expression;
  for (const problem of compiled.problems) report({ ...problem, offset: offset + problem.offset });
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
function piecesOf(value: string): readonly (string | Piece)[] | undefined {
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

/** CEL as it is, or in `${{ }}`. */
function* bare(value: unknown, path: Path): Generator<WrittenExpression, void> {
  if (typeof value !== "string") return;
  const wrapped = /^(\s*\$\{\{)([^]*)\}\}\s*$/.exec(value);
  yield { source: wrapped?.[2] ?? value, offset: wrapped?.[1]?.length ?? 0, path };
}

function entriesOf(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : [];
}
