/** Functions of JSONata whose result depends on more than their arguments. */
export const IMPURE: ReadonlySet<string> = new Set(["now", "millis", "random", "shuffle"]);

export function impureSentence(name: string): string {
  return `$${name} gives another result each time, and a transform must give the same when it is computed again: take times and chance from a node before it`;
}
