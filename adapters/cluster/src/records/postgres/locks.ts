import { hash } from "node:crypto";

/** Names are spread over this many locks: by chance, two processes wait for each other in one of thousands of transactions. */
const BUCKETS = 2 ** 24;
/**
 * A server has memory for some thousands of locks, shared by all its clients. A transaction that needs more locks than this takes
 * the whole store exclusively.
 */
const MOST_LOCKS = 256;

/** Names of locks that all processes with the same store share. A lock is released when its transaction ends. */
export interface Locks {
  /** SQL that waits for the lock for changes of tables. */
  readonly tables: string;
  /** SQL that waits for the locks of a transaction's changes, always in the same order, so that no deadlock occurs. */
  writers(names: Iterable<string>): string;
}

/** The locks of the store in this schema. All processes with the store must agree on them. */
export function createLocks(schema: string): Locks {
  const store = Buffer.from(hash("sha256", `portico ${schema}`, "buffer")).readInt32BE();
  const [tables, everything] = [BUCKETS, BUCKETS + 1];
  return {
    tables: `SELECT pg_advisory_xact_lock(${store}, ${tables})`,
    writers(names) {
      const buckets = [...new Set(Array.from(names, bucketOf))].sort((a, b) => a - b);
      if (buckets.length > MOST_LOCKS) return `SELECT pg_advisory_xact_lock(${store}, ${everything})`;
      return `SELECT pg_advisory_xact_lock_shared(${store}, ${everything});
        SELECT count(pg_advisory_xact_lock(${store}, bucket)) FROM unnest('{${buckets.join()}}'::int[]) AS bucket`;
    },
  };
}

/** FNV-1a: spreads names over the buckets, the same in every process. */
function bucketOf(name: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < name.length; at++) sum = Math.imul(sum ^ name.charCodeAt(at), 0x01000193);
  return (sum >>> 0) % BUCKETS;
}
