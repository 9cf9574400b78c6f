/**
 * The circles of a graph: sets of more than one node of which each leads to each other. Each is sorted. (Strongly connected components, by
 * Tarjan's algorithm.)
 */
export function findCircles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const found = new Map<string, { readonly order: number; lowest: number; isOpen: boolean }>();
  const open: string[] = [];

  const visit = (node: string) => {
    const mark = { order: found.size, lowest: found.size, isOpen: true };
    found.set(node, mark);
    open.push(node);
    for (const next of graph.get(node) ?? []) {
      const known = found.get(next);
      if (!known) mark.lowest = Math.min(mark.lowest, visit(next).lowest);
      else if (known.isOpen) mark.lowest = Math.min(mark.lowest, known.order);
    }
    if (mark.lowest === mark.order) {
      const circle = open.splice(open.indexOf(node));
      for (const each of circle) found.get(each)!.isOpen = false;
      if (circle.length > 1) circles.push(circle.sort());
    }
    return mark;
  };

  for (const node of graph.keys()) if (!found.has(node)) visit(node);
  return circles;
}
