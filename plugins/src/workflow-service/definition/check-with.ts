import type { ports } from "@portico/core";
import type { SchemaFaultPlace } from "@portico/core/kit";
import { checkShape, type ShapeProblem } from "./check-shape.ts";
import { hasTemplate } from "./compile-template.ts";
import type { DefinitionProblem, Path } from "./definition-problem.ts";
import type { Source } from "./read-source.ts";

/** Keys whose literal value is a JSON Schema. */
const SCHEMA_KEYS = new Set(["output", "form"]);

/** Report the problems of a node's `with` as it is written. Values with templates are left out, because their results are unknown. */
export function checkWith(
  rules: ports.NodeRules,
  written: Readonly<Record<string, unknown>>,
  path: Path,
  by: {
    readonly source: Source;
    tell(problem: DefinitionProblem): void;
    schemaFault(schema: Readonly<Record<string, unknown>>): SchemaFaultPlace | undefined;
  },
): void {
  const { source, tell } = by;
  for (const problem of checkShape(rules.input, written)) {
    if (isOfHole(problem, rules, written)) continue;
    const at = [...path, ...problem.path];
    tell(problem.kind === "unknown-key" ? source.keyProblem(at, problem.message) : source.problem(at, problem.message));
  }
  for (const { path: below, message } of faultsOf(rules, written)) tell(source.problem([...path, ...below], message));
  for (const [key, value] of Object.entries(written)) {
    if (rules.keys?.[key] !== "verbatim" || !SCHEMA_KEYS.has(key) || typeof value !== "object" || value === null) continue;
    const fault = by.schemaFault(value as Record<string, unknown>);
    if (fault) tell(source.problem([...path, key, ...fault.path], fault.message));
  }
}

function isOfHole({ path, kind }: ShapeProblem, rules: ports.NodeRules, written: Readonly<Record<string, unknown>>): boolean {
  if (kind === "unknown-key") return false;
  const law = typeof path[0] === "string" && rules.keys && Object.hasOwn(rules.keys, path[0]) ? rules.keys[path[0]] : undefined;
  if (law === "verbatim") return false;
  const at = path.reduce<unknown>((value, key) => (value as Record<string | number, unknown> | undefined)?.[key], written);
  // An expression replaces the value, so it is not checked here. Graphs and objects of expressions are checked when they are compiled.
  if (law === "expression" && typeof written[path[0]!] === "string") return true;
  return hasTemplate(at);
}

function faultsOf(rules: ports.NodeRules, written: Readonly<Record<string, unknown>>): readonly ports.NodeFault[] {
  try {
    return rules.check?.(written) ?? [];
  } catch {
    // The node type's code cannot handle this invalid value. The schema has already reported the problem.
    return [];
  }
}
