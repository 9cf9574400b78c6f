/**
 * Whether lists and objects of a JSON value nest deeper than `most`: `1` has no level, `[1]` one. Many operations on JSON recurse
 * (`JSON.stringify`, `structuredClone`, schemas) and overflow the stack at some thousands of levels. It looks no deeper than
 * `most`. A value that occurs in several places is visited in each of them: limit the size of values that are not trees first.
 */
export function hasMoreLevels(value: unknown, most: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (most === 0) return true;
  if (Array.isArray(value)) {
    for (const each of value) if (hasMoreLevels(each, most - 1)) return true;
    return false;
  }
  for (const key in value) if (hasMoreLevels((value as Record<string, unknown>)[key], most - 1)) return true;
  return false;
}
