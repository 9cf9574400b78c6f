import { type ports, readPages, Secret } from "@portico/core";
import { type ImportedWork, importWorks, readWorks } from "../../engine/cluster/import-works.ts";
import { toLogEntry } from "@portico/adapters/log/log-text";
import { createStreamRows, type StreamChange } from "../../log/postgres/stream-rows.ts";
import type { PostgresStore } from "../../records/postgres/store.ts";
import { digestBlob, digestCollection, digestEntries, digestWorks, type PartDigest } from "./digests.ts";
import type { MoveSource } from "./open-source.ts";
import { raiseVersions } from "./postgres-target.ts";

/** Where a data directory is copied to. */
export interface MoveTarget {
  readonly records: ports.Records;
  readonly log: ports.EventLog;
  readonly blobs: ports.Blobs;
  readonly secrets: ports.Secrets;
  readonly store: PostgresStore;
}

/** One part of a store: how it is copied, and what differs afterwards. */
export interface MovePart {
  readonly name: "records" | "log" | "works" | "blobs" | "secrets";
  /** Returns how many things were copied. */
  copy(source: MoveSource, target: MoveTarget, signal: AbortSignal | undefined): Promise<number>;
  /** What differs, as text for people. */
  compare(source: MoveSource, target: MoveTarget): Promise<readonly string[]>;
}

/** Limits of one batch, and so of its memory. */
const BATCH_ITEMS = 200;
const BATCH_CHARACTERS = 4 * 1024 * 1024;
const PAGE = 100;

const records: MovePart = {
  name: "records",
  async copy({ records: from, collections, newestVersion }, { records: to, store }, signal) {
    await raiseVersions(store, newestVersion);
    let count = 0;
    for (const name of collections) {
      const [source, target] = [from.collection<object>({ name }), to.collection<object>({ name })];
      for await (const items of readPages(source, { limit: PAGE })) {
        signal?.throwIfAborted();
        await to.batch(items.map(({ id, value }) => target.write.put(id, value, "absent")));
        count += items.length;
      }
    }
    return count;
  },
  compare: ({ records: from, collections }, { records: to }) =>
    differences(collections, "collection", (name) => [digestCollection(from, name), digestCollection(to, name)]),
};

const log: MovePart = {
  name: "log",
  async copy(source, { store }, signal) {
    const part = createStreamRows(store.schema);
    let batch: StreamChange[] = [];
    let characters = 0;
    let count = 0;
    const write = async (): Promise<void> => {
      signal?.throwIfAborted();
      await store.change([{ part, changes: batch }]);
      count += batch.length;
      [batch, characters] = [[], 0];
    };
    for (const stream of source.streams) {
      for (const text of source.entries(stream)) {
        batch.push({ stream: stream.name, text: storable(text) });
        characters += text?.length ?? 0;
        if (batch.length === BATCH_ITEMS || characters > BATCH_CHARACTERS) await write();
      }
    }
    await write();
    return count;
  },
  async compare(source, { log: to }) {
    const streams = new Map(source.streams.map((stream) => [stream.name, stream]));
    // The rows themselves and not the port's: a missing row is a damaged entry in the target.
    const entriesOf = function* (name: string) {
      let sequence = 0;
      for (const text of source.entries(streams.get(name)!)) yield toLogEntry(++sequence, text);
    };
    return differences([...streams.keys()], "stream", (name) => [digestEntries(entriesOf(name)), digestEntries(to.read(name))]);
  },
};

const works: MovePart = {
  name: "works",
  async copy(source, { store }, signal) {
    let batch: ImportedWork[] = [];
    let characters = 0;
    let count = 0;
    const write = async (): Promise<void> => {
      signal?.throwIfAborted();
      await importWorks(store, batch);
      count += batch.length;
      [batch, characters] = [[], 0];
    };
    for (const work of source.works()) {
      batch.push(work);
      for (const { value } of work.notes) characters += value?.length ?? 0;
      if (batch.length === BATCH_ITEMS || characters > BATCH_CHARACTERS) await write();
    }
    await write();
    return count;
  },
  async compare(source, { store }) {
    const [from, to] = [await digestWorks(source.works()), await digestWorks(readWorks(store))];
    return from.count === to.count && from.digest === to.digest ? [] : ["the engine's journal"];
  },
};

const blobs: MovePart = {
  name: "blobs",
  async copy({ blobs: from }, { blobs: to }, signal) {
    let count = 0;
    for await (const key of from.keys("", signal)) {
      const found = await from.open(key, signal && { signal });
      if (!found) continue;
      await to.put(key, found.stream, { maxBytes: found.size, ...(signal && { signal }) });
      count++;
    }
    return count;
  },
  async compare({ blobs: from }, { blobs: to }) {
    const keys = await Array.fromAsync(from.keys());
    return differences(keys.sort(), "blob", (key) => [digestBlob(from, key), digestBlob(to, key)]);
  },
};

const secrets: MovePart = {
  name: "secrets",
  async copy({ secrets: from }, { secrets: to }) {
    for (const [name, value] of from) await to.replace(name, new Secret(value));
    return from.size;
  },
  async compare({ secrets: from }, { secrets: to }) {
    const differing: string[] = [];
    for (const [name, value] of from) if ((await to.find(name))?.reveal() !== value) differing.push(`secret ${name}`);
    return differing;
  },
};

/** All parts, in the order in which they are copied. */
export const MOVE_PARTS: readonly MovePart[] = [records, log, works, blobs, secrets];

/** An entry that cannot be read is moved as one that cannot be read. PostgreSQL does not store U+0000, which JSON never contains. */
function storable(text: string | undefined): string {
  return text === undefined || text.includes("\0") ? "" : text;
}

async function differences(
  names: readonly string[],
  what: string,
  digests: (name: string) => readonly [Promise<PartDigest | undefined>, Promise<PartDigest | undefined>],
): Promise<readonly string[]> {
  const differing: string[] = [];
  for (const name of names) {
    const [from, to] = await Promise.all(digests(name));
    if (from?.count !== to?.count || from?.digest !== to?.digest) differing.push(`${what} ${name}`);
  }
  return differing;
}
