import type { ports } from "@portico/core";

/** Everything that a query finds, in pages of its `limit`, while others come and go. Throws RecordsUnavailable. */
export async function* readPages<T extends object>(
  collection: ports.Collection<T>,
  query: ports.Query,
): AsyncGenerator<readonly ports.Stored<T>[], void> {
  let after: string | undefined;
  do {
    const page: ports.Page<T> = await collection.query({ ...query, ...(after !== undefined && { after }) });
    yield page.items;
    after = page.next;
  } while (after !== undefined);
}
