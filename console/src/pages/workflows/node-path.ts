/** Paths in a run's history: `each[3].read` is the node `read` of the fourth element of `each`. */
export interface PathStep {
  readonly id: string;
  /** The index of the element, if the next step is inside an element. */
  readonly index?: number;
}

/** The steps to a node of a run, from the outermost node inwards. */
export function nodePath(key: string): PathStep[] {
  return key.split(".").map((step) => {
    const [, id = step, index] = /^(.*)\[(\d+)\]$/.exec(step) ?? [];
    return index === undefined ? { id } : { id, index: Number(index) };
  });
}

/** The path in the definition: `each.read`. */
export function definitionId(key: string): string {
  return nodePath(key)
    .map(({ id }) => id)
    .join(".");
}
