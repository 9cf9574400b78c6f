/**
 * The parameters of a query. A parameter that occurs once is a string. A repeated one is an array, which the schema accepts or
 * refuses.
 */
export function readQuery(search: string): Record<string, string | string[]> {
  const query = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(search)) {
    const known = query.get(name);
    query.set(name, known === undefined ? value : Array.isArray(known) ? [...known, value] : [known, value]);
  }
  // Object.fromEntries defines own properties, so that a parameter named __proto__ is an ordinary name.
  return Object.fromEntries(query);
}
