/** Ids with their needs. Needs that do not exist are ignored here. */
export type Needs = ReadonlyMap<string, readonly string[]>;

/** Sorts ids so that each comes after its needs, and otherwise keeps the written order. If that is impossible, returns the cycles. */
export function orderNodes(
  needs: Needs,
): { readonly order: readonly string[] } | { readonly circles: readonly (readonly string[])[] } {
  const order: string[] = [];
  const circles: string[][] = [];
  const state = new Map<string, "open" | "done">();
  // An explicit stack instead of recursion, because a chain of needs can contain all nodes.
  for (const first of needs.keys()) {
    if (state.has(first)) continue;
    const path: { id: string; rest: string[] }[] = [];
    const enter = (id: string): void => {
      state.set(id, "open");
      path.push({ id, rest: (needs.get(id) ?? []).filter((need) => needs.has(need)) });
    };
    enter(first);
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const need = top.rest.shift();
      if (need === undefined) {
        state.set(top.id, "done");
        order.push(top.id);
        path.pop();
      } else if (!state.has(need)) enter(need);
      else if (state.get(need) === "open") circles.push(path.slice(path.findIndex(({ id }) => id === need)).map(({ id }) => id));
    }
  }
  return circles.length > 0 ? { circles } : { order };
}

/** All direct and indirect needs of a node. Also terminates on cycles. */
export function ancestorsOf(id: string, needs: Needs): ReadonlySet<string> {
  const reached = new Set<string>();
  const open = [...(needs.get(id) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next) || !needs.has(next)) continue;
    reached.add(next);
    open.push(...(needs.get(next) ?? []));
  }
  return reached;
}
