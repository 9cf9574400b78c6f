import { hash } from "node:crypto";

/** Locks of writers are as many, so that one transaction never asks the server for more than these. */
const BUCKETS = 1024;

/** Names of locks that all processes with the same store share. They are let go when a transaction ends. */
export interface Locks {
  /** SQL that waits for the one lock of whoever changes tables. */
  readonly tables: string;
  /** SQL that waits for the locks of what a transaction changes, always in one order, so that no two wait for each other. */
  writers(names: Iterable<string>): string;
}

/** The locks of the store in this schema. */
export function createLocks(schema: string): Locks {
  const store = Buffer.from(hash("sha256", `portico ${schema}`, "buffer")).readInt32BE();
  return {
    tables: `SELECT pg_advisory_xact_lock(${store}, ${BUCKETS})`,
    writers(names) {
      const buckets = [...new Set(Array.from(names, bucketOf))].sort((a, b) => a - b);
      return `SELECT count(pg_advisory_xact_lock(${store}, bucket)) FROM unnest('{${buckets.join()}}'::int[]) AS bucket`;
    },
  };
}

/** FNV-1a: spreads names over the buckets, the same in every process. */
function bucketOf(name: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < name.length; at++) sum = Math.imul(sum ^ name.charCodeAt(at), 0x01000193);
  return (sum >>> 0) % BUCKETS;
}
