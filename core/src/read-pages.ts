import type { Collection, Page, Query, Stored } from "./ports/records.ts";

/** Records of one page, where the caller names no limit. */
const PAGE = 100;

/** Everything that a query finds, in pages of its `limit` (default 100), while records are added and removed. Throws RecordsUnavailable. */
export async function* readPages<T extends object>(
  collection: Collection<T>,
  { limit = PAGE, ...query }: Omit<Query, "after">,
): AsyncGenerator<readonly Stored<T>[], void> {
  let after: string | undefined;
  do {
    const page: Page<T> = await collection.query({ ...query, limit, ...(after !== undefined && { after }) });
    yield page.items;
    after = page.next;
  } while (after !== undefined);
}
