import { ROOT_NAMES } from "./expression-language.ts";
import { childrenOf, isSyntaxNode, type SyntaxNode } from "./syntax-tree.ts";

/** Functions whose result holds no text that was not there before: a secret in it is found as it was. */
const MAKES_NO_TEXT = new Set([
  ...["has", "size", "contains", "startsWith", "endsWith", "matches", "indexOf", "lastIndexOf", "type", "dyn", "bool"],
  ...["all", "exists", "exists_one", "map", "filter", "bind", "timestamp", "duration"],
]);

const ROOTS: ReadonlySet<unknown> = new Set(ROOT_NAMES);

/**
 * What an expression reads, by the path of each value, where it may make other texts of them: `secrets.KEY.upperAscii()`, and not
 * `"Bearer " + secrets.KEY`, in which the secret is found. Undefined where it makes none.
 */
export function derivingReads(tree: SyntaxNode): readonly (readonly string[])[] | undefined {
  if (!makesTexts(tree)) return undefined;
  const reads: (readonly string[])[] = [];
  collect(tree, reads);
  return reads.length > 0 ? reads : undefined;
}

/** What stands at a path, or the nearest around it: lists, and what is looked up in brackets, are taken whole. */
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

/** `root.a.b`; what is looked up in brackets counts as the whole that it is looked up in. */
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
