/** What stands in a run's history: `each[3].read` is the node `read` of the fourth element of `each`. */
export interface PathStep {
  readonly id: string;
  /** Of the element, where the next step is within one. */
  readonly index?: number;
}

/** The steps to a node of a run, from the outermost inwards. */
export function nodePath(key: string): PathStep[] {
  return key.split(".").map((step) => {
    const [, id = step, index] = /^(.*)\[(\d+)\]$/.exec(step) ?? [];
    return index === undefined ? { id } : { id, index: Number(index) };
  });
}

/** What the definition calls it: `each.read`. */
export function definitionId(key: string): string {
  return nodePath(key)
    .map(({ id }) => id)
    .join(".");
}
