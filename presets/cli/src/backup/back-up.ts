import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { VERSION } from "@portico/presets/platform/version";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import { dataDirectory } from "../data-directory.ts";
import { checkDirectoryFormat } from "../directory-format.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { refuseOtherStores } from "../instance-stores.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { ARCHIVE_FORMAT, HEAD } from "./archive-format.ts";
import { createArchiveWriter } from "./archive-writer.ts";
import { collectData } from "./collect-data.ts";
import { collectDocuments } from "./collect-documents.ts";
import { createEntryIndex } from "./entry-index.ts";
import { endOnSignal } from "./end-on-signal.ts";
import { openUnfinishedArchive } from "./unfinished-archive.ts";
import { writeManifest } from "./write-manifest.ts";

/** Options of `backUp`. */
export interface BackupOptions {
  /** Replace an existing archive. */
  readonly force: boolean;
  /** Compress the archive. */
  readonly gzip: boolean;
}

/** A finished backup. */
export interface Backup {
  /** The archive. */
  readonly file: string;
  readonly bytes: number;
  readonly entries: number;
  /** ISO 8601: when the backup began. The archive has everything that was accepted until then. */
  readonly createdAt: string;
  /** What the archive does not have and a person should know of, as sentences. */
  readonly warnings: readonly string[];
}

/** Said by the commands in the folder of a cluster. */
export const CLUSTER_WORDS =
  "This instance is a cluster: its data is in PostgreSQL and in the place of blobs. Back it up and restore it with the tools of those (docs/cluster-operations.md)";

/** Said by the commands that copy a data directory. */
export const NOT_SAVED =
  "this command copies only the stores of a data directory. Save and restore these with their own tools (docs/another-store.md)";

/**
 * Copy a data directory and the documents of its instance into one archive, also while its service runs. The copy is consistent: it has
 * the state of one moment after the call. Throws CommandFailed: 66, 69, 73, 78, also for an instance with other stores.
 */
export async function backUp(flags: SettingsFlags, file: string, { force, gzip }: BackupOptions): Promise<Backup> {
  const { settings } = await readSettings(flags);
  if (namesCluster(settings)) throw new CommandFailed(CLUSTER_WORDS, EXIT.config);
  refuseOtherStores(settings, NOT_SAVED);
  const directory = dataDirectory(settings.dataDir);
  if (!existsSync(directory.path)) throw new CommandFailed(`There is no data directory ${directory.path}`, EXIT.noInput);
  checkDirectoryFormat(directory);

  const path = resolve(file);
  const unfinished = openUnfinishedArchive(path, { force });
  const stopListening = endOnSignal(() => unfinished.close());
  try {
    const createdAt = new Date();
    const archivePath = unfinished.newPath();
    const index = createEntryIndex(unfinished.newPath());
    const writer = createArchiveWriter(archivePath, { gzip });
    try {
      const modifiedAt = createdAt.getTime();
      const facts = { format: ARCHIVE_FORMAT, version: VERSION, createdAt: createdAt.toISOString() };
      const head = Buffer.from(`${JSON.stringify(facts)}\n`);
      await writer.add({ name: HEAD, size: head.length, modifiedAt }, [head]);
      const target = { writer, index, newPath: () => unfinished.newPath() };
      // Before the records: a webhook in a document that is newer than the records would have no secret.
      const leftOut = await collectDocuments(settings, target);
      const { formats, storeVersion, warnings } = await collectData(directory, target);
      const entries = index.count();
      await writeManifest({ ...facts, formats, entries, ...(storeVersion !== undefined && { storeVersion }) }, target);
      await writer.finish();
      unfinished.place(archivePath);
      return {
        file: path,
        bytes: statSync(path).size,
        entries,
        createdAt: facts.createdAt,
        warnings: [...leftOut, ...warnings],
      };
    } catch (error) {
      await writer.abort(error);
      throw toFailure(error, path);
    } finally {
      index.close();
    }
  } finally {
    stopListening();
    unfinished.close();
  }
}

/** Errors of files and of SQLite become a line. */
function toFailure(error: unknown, file: string): unknown {
  if (error instanceof CommandFailed || !(error instanceof Error)) return error;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if ("errstr" in error) {
    const words = `The records store cannot be copied (${String(error.errstr)}); portico doctor says more`;
    return new CommandFailed(words, EXIT.unavailable, error);
  }
  if (syscall === undefined && error.name !== "BlobsUnavailable") return error;
  return new CommandFailed(`${file} cannot be written (${code ?? error.message})`, EXIT.cannotCreate, error);
}
