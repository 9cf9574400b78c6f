/** A text that two values of JSON share exactly if they are equal: objects with the same members in any order. */
export function canonicalText(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) => {
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}
