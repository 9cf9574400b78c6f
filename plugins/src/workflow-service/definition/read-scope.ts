import { chainsOf } from "./check-names.ts";
import type { ExpressionScope } from "./expression.ts";
import { setOwn } from "./set-own.ts";
import type { SyntaxNode } from "./syntax-tree.ts";

/** The part of a scope that an expression reads. Names of nodes and secrets are never computed, so only the named ones are taken. */
export function readScope(tree: SyntaxNode, scope: ExpressionScope): ExpressionScope {
  const chains = chainsOf(tree);
  const roots = new Set(chains.map(({ root }) => root));
  const namedBelow = (wanted: string) => chains.flatMap(({ root, keys }) => (root === wanted ? keys.slice(0, 1) : []));
  return {
    parameters: roots.has("parameters") ? scope.parameters : null,
    nodes: pick(scope.nodes, namedBelow("nodes")),
    run: scope.run,
    secrets: pick(scope.secrets, namedBelow("secrets")),
    item: roots.has("item") ? scope.item : null,
    index: scope.index,
    previous: roots.has("previous") ? scope.previous : null,
    gate: roots.has("gate") ? scope.gate : null,
    failure: roots.has("failure") ? scope.failure : null,
  };
}

function pick<T>(values: Readonly<Record<string, T>>, keys: readonly { readonly name: string }[]): Record<string, T> {
  const picked: Record<string, T> = {};
  for (const { name } of keys) if (Object.hasOwn(values, name)) setOwn(picked, name, values[name]);
  return picked;
}
