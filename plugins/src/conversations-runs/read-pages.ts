import type { ports } from "@portico/core";

const PAGE = 100;

/** Everything that a query finds, in pages, while records are added and removed. Throws RecordsUnavailable. */
export async function* readPages<T extends object>(
  collection: ports.Collection<T>,
  query: Pick<ports.Query, "where" | "order">,
): AsyncGenerator<readonly ports.Stored<T>[], void> {
  let after: string | undefined;
  do {
    const page: ports.Page<T> = await collection.query({ ...query, limit: PAGE, ...(after !== undefined && { after }) });
    yield page.items;
    after = page.next;
  } while (after !== undefined);
}
