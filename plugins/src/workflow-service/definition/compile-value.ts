import type { ports } from "@portico/core";
import type { SchemaFaultPlace } from "@portico/core/kit";
import type { Names } from "./check-names.ts";
import { compileTemplate } from "./compile-template.ts";
import type { Expressions } from "./create-expressions.ts";
import type { DefinitionProblem, Path } from "./definition-problem.ts";
import type { Expression, Template } from "./expression.ts";
import type { Source } from "./read-source.ts";

/** The context of compiling one definition, and the receiver of its problems. */
export interface Compiling {
  readonly source: Source;
  readonly types: ReadonlyMap<string, ports.NodeRules>;
  readonly secrets: ReadonlySet<string>;
  readonly expressions: Expressions;
  /** Why a JSON Schema cannot be used. One reason is that all schemas of the definition together take too long. */
  schemaFault(schema: Readonly<Record<string, unknown>>): SchemaFaultPlace | undefined;
  tell(problem: DefinitionProblem): void;
  /** Counts one node; false if there are too many. */
  count(): boolean;
}

/** A template of any JSON at a path. */
export function compileValue(value: unknown, path: Path, names: Names, by: Compiling): Template {
  return compileTemplate(
    value,
    (source) => by.expressions.compile(source, names),
    (problem) => by.tell(by.source.textProblem([...path, ...problem.path], problem.offset, problem.message)),
  );
}

/** CEL as it is, or in `${{ }}`. */
export function compileExpression(text: string, path: Path, names: Names, by: Compiling): Expression | undefined {
  const wrapped = /^(\s*\$\{\{)([^]*)\}\}\s*$/.exec(text);
  const compiled = by.expressions.compile(wrapped?.[2] ?? text, names);
  if ("expression" in compiled) return compiled.expression;
  const offset = wrapped?.[1]?.length ?? 0;
  for (const problem of compiled.problems) by.tell(by.source.textProblem(path, offset + problem.offset, problem.message));
  return undefined;
}
