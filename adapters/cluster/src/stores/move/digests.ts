import { createHash, type Hash } from "node:crypto";
import { type ports, readPages } from "@portico/core";
import type { ImportedWork } from "../../engine/cluster/import-works.ts";
import { WORK_COLUMNS } from "../../engine/cluster/work-row.ts";

/** How many things are in a part of a store, and their SHA-256, in an order that every store has. */
export interface PartDigest {
  readonly count: number;
  readonly digest: string;
}

const PAGE = 1000;

/** All records of a collection, in the order of their IDs, without their versions. */
export async function digestCollection(records: ports.Records, name: string): Promise<PartDigest> {
  const collection = records.collection<object>({ name });
  return digesting(async (add) => {
    for await (const items of readPages(collection, { limit: PAGE })) {
      for (const { id, value } of items) add(JSON.stringify([id, value]));
    }
  });
}

/** All entries of a stream. */
export async function digestEntries(entries: Iterable<ports.LogEntry> | AsyncIterable<ports.LogEntry>): Promise<PartDigest> {
  return digesting(async (add) => {
    for await (const entry of entries) add(JSON.stringify(entry));
  });
}

/** All works of a journal, with their notes. */
export async function digestWorks(works: Iterable<ImportedWork> | AsyncIterable<ImportedWork>): Promise<PartDigest> {
  return digesting(async (add) => {
    for await (const { row, notes } of works) {
      const columns = WORK_COLUMNS.map(([name]) => row[name]);
      add(JSON.stringify([columns, notes.map(({ kind, name, number, state, value }) => [kind, name, number, state, value])]));
    }
  });
}

/** The bytes of a blob. The count is the number of bytes. Undefined for a missing blob. */
export async function digestBlob(blobs: ports.Blobs, key: string): Promise<PartDigest | undefined> {
  const found = await blobs.open(key);
  if (!found) return undefined;
  const sum = createHash("sha256");
  let count = 0;
  for await (const chunk of found.stream as AsyncIterable<Uint8Array>) {
    sum.update(chunk);
    count += chunk.length;
  }
  return { count, digest: sum.digest("hex") };
}

async function digesting(walk: (add: (text: string) => void) => Promise<void>): Promise<PartDigest> {
  const sum: Hash = createHash("sha256");
  let count = 0;
  await walk((text) => {
    sum.update(text).update("\n");
    count++;
  });
  return { count, digest: sum.digest("hex") };
}
