import { resolve } from "node:path";
import { defineAdapter, optional, ports } from "@portico/core";
import { type PostgresStore, postgresStoreOf } from "../records/postgres/store.ts";
import { createDocuments } from "@portico/adapters/documents/create-documents";
import type { DocumentPlace } from "@portico/adapters/documents/document-place";
import { followBus } from "@portico/adapters/documents/follow-bus";
import { folderPlace } from "@portico/adapters/documents/folder-place";

/** Options of `sharedFolderDocuments`. */
export interface SharedFolderDocumentsOptions {
  /** ID of the source: `agents`, `workflows`. */
  readonly id: string;
  /** The folder, on a file system that all machines share. It is created if it is missing. */
  readonly dir: string;
  /** Maximum segments of a name that is listed and watched. Default: any number. */
  readonly depth?: number;
  /** Milliseconds between two checks for changes: few shared file systems report changes of other machines. Default: 2,000. */
  readonly pollMs?: number;
}

const POLL_MS = 2000;

/**
 * Documents as files of a folder that several machines share. Writes take a lock in the database of `records/postgres`, so that two
 * processes do not overwrite each other. Edits by people take no lock: a write whose base they have changed is refused, except for
 * a change between the last two system calls. Opening throws TypeError if the records are not in PostgreSQL.
 */
export const sharedFolderDocuments = defineAdapter({
  name: "documents/shared-folder",
  port: ports.documents,
  needs: { records: ports.records, bus: optional(ports.bus), clock: ports.clock },
  open({ records, bus, clock }, { id, dir, depth = Infinity, pollMs = POLL_MS }: SharedFolderDocumentsOptions, scope) {
    const store = postgresStoreOf(records);
    if (!store) throw new TypeError("A shared folder of documents takes its locks in PostgreSQL, but the records are elsewhere");
    const place = sharedPlace(id, folderPlace(resolve(dir), depth), { store, bus });
    return { ...createDocuments(id, place, { clock, times: { netMs: pollMs, pollMs }, scope }), isShared: true };
  },
});

function sharedPlace(
  id: string,
  place: DocumentPlace,
  { store, bus }: { readonly store: PostgresStore; readonly bus: ports.Bus | undefined },
): DocumentPlace {
  const topic = `documents/${id}`;
  const locked = async (name: string, write: () => Promise<void>): Promise<void> => {
    await store.locked(`_documents/${id}/${name}`, write);
    bus?.publish(topic, { name });
  };
  return {
    ...place,
    replace: (name, text, check) => locked(name, () => place.replace(name, text, check)),
    remove: (name, check) => locked(name, () => place.remove(name, check)),
    async watch(hint) {
      const stop = bus && followBus(bus, topic, hint);
      // Some shared file systems cannot watch. The periodic checks see their changes.
      const stopFolder = await place.watch?.(hint).catch(() => undefined);
      return async () => {
        stop?.();
        await stopFolder?.();
      };
    },
  };
}
