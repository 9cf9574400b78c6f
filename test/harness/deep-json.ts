/** The text of a JSON list with as many levels: `[]` is one. */
export function deepList(levels: number): string {
  return "[".repeat(levels) + "]".repeat(levels);
}
