/** The parameters of a query: one that comes once is a string, one that comes several times an array, for the schema to refuse or take. */
export function readQuery(search: string): Record<string, string | string[]> {
  const query = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(search)) {
    const known = query.get(name);
    query.set(name, known === undefined ? value : Array.isArray(known) ? [...known, value] : [known, value]);
  }
  // Object.fromEntries defines own properties, so that a parameter named __proto__ is just a name.
  return Object.fromEntries(query);
}
