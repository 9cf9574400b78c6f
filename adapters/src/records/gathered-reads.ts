/** One read of a record, and what waits for it. */
interface Waiting<Row> {
  readonly id: string;
  readonly reading: PromiseWithResolvers<Row | undefined>;
}

/** Records that one statement reads at most. */
const MOST = 500;

/**
 * Reads records by id. Reads of one collection that begin in the same turn of microtasks share a statement: a page of a search costs one round
 * trip to the server, and not one for each record. `readAll` returns the records that exist, in any order; if it rejects, so does each read.
 */
export function gatherReads<Row extends { readonly id: string }>(
  readAll: (collection: string, ids: readonly string[]) => Promise<readonly Row[]>,
): (collection: string, id: string) => Promise<Row | undefined> {
  const waiting = new Map<string, Waiting<Row>[]>();

  const readTogether = async (collection: string, reads: readonly Waiting<Row>[]): Promise<void> => {
    try {
      const rows = await readAll(collection, [...new Set(reads.map(({ id }) => id))]);
      const found = new Map(rows.map((row) => [row.id, row]));
      for (const { id, reading } of reads) reading.resolve(found.get(id));
    } catch (error) {
      for (const { reading } of reads) reading.reject(error);
    }
  };

  const readWaiting = (collection: string): void => {
    const reads = waiting.get(collection)!;
    waiting.delete(collection);
    for (let from = 0; from < reads.length; from += MOST) void readTogether(collection, reads.slice(from, from + MOST));
  };

  return (collection, id) => {
    const reading = Promise.withResolvers<Row | undefined>();
    const together = waiting.get(collection);
    if (together) together.push({ id, reading });
    else {
      waiting.set(collection, [{ id, reading }]);
      queueMicrotask(() => readWaiting(collection));
    }
    return reading.promise;
  };
}
