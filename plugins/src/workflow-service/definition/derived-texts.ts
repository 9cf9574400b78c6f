import { ROOT_NAMES } from "./expression-language.ts";
import { childrenOf, isSyntaxNode, type SyntaxNode } from "./syntax-tree.ts";

/** Functions whose result contains no new text. A secret in the result is still found in its original form. */
const MAKES_NO_TEXT = new Set([
  ...["has", "size", "contains", "startsWith", "endsWith", "matches", "indexOf", "lastIndexOf", "type", "dyn", "bool"],
  ...["all", "exists", "exists_one", "map", "filter", "bind", "timestamp", "duration"],
  ...["sort", "sortBy", "distinct", "flatten", "first", "last", "intersects", "equivalent"],
]);

const ROOTS: ReadonlySet<unknown> = new Set(ROOT_NAMES);

/**
 * The paths that an expression reads, if it may make new texts of the values. `secrets.KEY.upperAscii()` makes a new text.
 * `"Bearer " + secrets.KEY` does not, because the secret is found in it. Undefined if the expression makes no new texts.
 */
export function derivingReads(tree: SyntaxNode): readonly (readonly string[])[] | undefined {
  if (!makesTexts(tree)) return undefined;
  const reads: (readonly string[])[] = [];
  collect(tree, reads);
  return reads.length > 0 ? reads : undefined;
}

/** The value at a path, or its nearest existing parent. Lists, and values that are accessed with brackets, are taken whole. */
export function readAlong(scope: object, path: readonly string[]): unknown {
  let value: unknown = scope;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return value;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function makesTexts(node: SyntaxNode): boolean {
  const isCall = node.op === "call" || node.op === "rcall";
  if (isCall && !MAKES_NO_TEXT.has((node.args as [string])[0])) return true;
  return childrenOf(node).some(makesTexts);
}

function collect(node: SyntaxNode, reads: (readonly string[])[]): void {
  const path = pathOf(node);
  if (path && ROOTS.has(path[0])) reads.push(path);
  else for (const child of childrenOf(node)) collect(child, reads);
}

/** `root.a.b`. An access with brackets counts as an access to the whole value before the brackets. */
function pathOf(node: SyntaxNode): readonly string[] | undefined {
  if (node.op === "id") return [node.args as string];
  if (node.op === ".") {
    const [of, key] = node.args as [SyntaxNode, string];
    const path = pathOf(of);
    return path && [...path, key];
  }
  if (node.op !== "[]") return undefined;
  const [of, key] = node.args as [SyntaxNode, unknown];
  return isSyntaxNode(key) && key.op === "value" ? pathOf(of) : undefined;
}
