import type { ports } from "@portico/core";
import { isRecord } from "@portico/core/contract";
import { piecesOf } from "../compile-template.ts";
import type { Path } from "../definition-problem.ts";

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

/** CEL as it is, or in `${{ }}`. */
function* bare(value: unknown, path: Path): Generator<WrittenExpression, void> {
  if (typeof value !== "string") return;
  const wrapped = /^(\s*\$\{\{)([^]*)\}\}\s*$/.exec(value);
  yield { source: wrapped?.[2] ?? value, offset: wrapped?.[1]?.length ?? 0, path };
}

function entriesOf(value: unknown): [string, unknown][] {
  return isRecord(value) ? Object.entries(value) : [];
}
