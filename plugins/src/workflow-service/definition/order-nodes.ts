/** Ids and what each needs; needs that are not there are left to others. */
export type Needs = ReadonlyMap<string, readonly string[]>;

/** Ids in an order in which each comes behind its needs, otherwise as they are written; or the circles that make that impossible. */
export function orderNodes(
  needs: Needs,
): { readonly order: readonly string[] } | { readonly circles: readonly (readonly string[])[] } {
  const order: string[] = [];
  const circles: string[][] = [];
  const state = new Map<string, "open" | "done">();
  // A stack of our own: needs can be as long a chain as there are nodes.
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

/** All that are before a node, however far. Terminates on circles, too. */
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
