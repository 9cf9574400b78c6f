import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type FileBlobsReading, readFileBlobs } from "@portico/adapters/blobs/files-reading";
import {
  NEWEST_STORE_FORMATS,
  readFolderFormat,
  readSecretsFormat,
  readTableFormats,
} from "@portico/adapters/stores/sqlite-formats";
import { holdSqliteWrites } from "@portico/adapters/stores/hold-sqlite-writes";
import { openSqliteReading, type SqliteReading } from "@portico/adapters/stores/sqlite-reading";
import { pendingUpload, pendingUploads } from "@portico/core";
import { BLOB_COLLECTIONS } from "../attachments.ts";
import { type DataDirectory, NEWER_STORE_HELP, readDirectoryFormat } from "../data-directory.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { FILES, RECORDS, SMALL_FILES } from "./archive-format.ts";
import { addFile, type BackupTarget } from "./archive-writer.ts";

/** A removal of a file and its record may be in progress. It takes milliseconds. In the last attempt, nothing can be removed. */
const ATTEMPTS = 5;
const PAUSE_MS = 200;
const SHOWN = 3;

/** What was copied of a data directory. */
interface CollectedData {
  readonly formats: Readonly<Record<string, number>>;
  readonly storeVersion: number | undefined;
  readonly warnings: readonly string[];
}

/**
 * Add the data of a directory, while its service may write to it.
 *
 * Blobs never change once they have a name, and a blob is stored before its record. So the blobs are copied first, then the records in one
 * snapshot, and then the blobs that were stored meanwhile: each record of the snapshot has its blob in the archive, unless the blob was
 * removed before it was copied. Then its record was removed, too, and a newer snapshot does not have it. If files are removed all the time, the
 * last snapshot is taken while no process can write. Credentials come after the records, so that the archive has every key that the
 * records need.
 */
export async function collectData(directory: DataDirectory, target: BackupTarget): Promise<CollectedData> {
  const blobs = readFileBlobs(directory.files);
  await addNewBlobs(blobs, target, () => true);
  const { snapshot, missing } = await takeSnapshot(directory, blobs, target);
  try {
    await leaveOutRest(snapshot?.reading, blobs, target);
    const formats = {
      directory: readDirectoryFormat(directory),
      ...(snapshot && readTableFormats(snapshot.reading.database)),
      files: readFolderFormat(directory.files) ?? 1,
      credentials: readSecretsFormat(directory.credentials) ?? 1,
    };
    refuseNewer(formats);
    if (snapshot) await addFile(target, RECORDS, snapshot.path);
    await addFile(target, `${FILES}.format`, join(directory.files, ".format"));
    for (const name of SMALL_FILES) await addFile(target, `data/${name}`, join(directory.path, name));
    const shown = missing.slice(0, SHOWN).join(", ") + (missing.length > SHOWN ? ` and ${missing.length - SHOWN} more` : "");
    const warning = `Records without a file, in this instance and in the archive: ${missing.length} (${shown}). portico doctor --deep lists them`;
    return { formats, storeVersion: snapshot?.reading.version(), warnings: missing.length > 0 ? [warning] : [] };
  } finally {
    snapshot?.reading.close();
  }
}

interface Snapshot {
  readonly path: string;
  readonly reading: SqliteReading;
}

/** A copy of the records, and the files that its records miss. */
async function takeSnapshot(
  directory: DataDirectory,
  blobs: FileBlobsReading,
  target: BackupTarget,
): Promise<{ readonly snapshot: Snapshot | undefined; readonly missing: readonly string[] }> {
  if (!existsSync(directory.records)) return { snapshot: undefined, missing: [] };
  let earlier: readonly string[] = [];
  for (let attempt = 1; ; attempt++) {
    const path = target.newPath();
    const release = attempt === ATTEMPTS ? holdSqliteWrites(directory.records) : () => {};
    let reading: SqliteReading | undefined;
    try {
      copyRecords(directory, path);
      reading = openSqliteReading(path);
      // Other plugins may store blobs, too. Their rules are unknown, so all their blobs are copied.
      const taken = reading;
      await addNewBlobs(blobs, target, (key) => hasRecord(taken, key) ?? true);
      const missing = missingBlobs(reading, target);
      // Files that are missing for good do not appear in a newer snapshot either.
      if (missing.length === 0 || missing.join() === earlier.join() || attempt === ATTEMPTS)
        return { snapshot: { path, reading }, missing };
      earlier = missing;
    } catch (error) {
      reading?.close();
      throw error;
    } finally {
      release();
    }
    reading.close();
    rmSync(path);
    await sleep(PAUSE_MS);
  }
}

function copyRecords(directory: DataDirectory, path: string): void {
  const source = openSqliteReading(directory.records);
  try {
    source.copyTo(path);
  } finally {
    source.close();
  }
}

async function addNewBlobs(blobs: FileBlobsReading, target: BackupTarget, isWanted: (key: string) => boolean): Promise<void> {
  for await (const key of blobs.keys()) {
    const name = FILES + key;
    if (target.index.find(name) || !isWanted(key)) continue;
    const [stat, found] = await Promise.all([blobs.stat(key), blobs.open(key)]);
    if (!found || !stat) {
      // Removed meanwhile.
      found?.stream.destroy();
      continue;
    }
    target.index.add(await target.writer.add({ name, size: found.size, modifiedAt: stat.modifiedAt }, found.stream));
  }
}

/** Undefined for a blob of another plugin. */
function hasRecord(reading: SqliteReading, key: string): boolean | undefined {
  const collection = BLOB_COLLECTIONS.find((name) => key.startsWith(`${name}/`));
  return collection === undefined ? undefined : reading.has(collection, key.slice(collection.length + 1));
}

function missingBlobs(reading: SqliteReading, { index }: BackupTarget): readonly string[] {
  const missing: string[] = [];
  for (const collection of BLOB_COLLECTIONS) {
    for (const { id } of reading.records(collection)) {
      const key = `${collection}/${id}`;
      if (!index.find(FILES + key)) missing.push(key);
    }
  }
  return missing;
}

/**
 * Leave out blobs that were removed while they were copied, and uploads that were not confirmed. A restored file without a record would
 * count as one from before files had owners.
 */
async function leaveOutRest(reading: SqliteReading | undefined, blobs: FileBlobsReading, { index }: BackupTarget): Promise<void> {
  for (const name of index.names(FILES)) {
    const key = name.slice(FILES.length);
    if (reading && hasRecord(reading, key)) continue;
    const isPending = reading?.has(pendingUploads.name, pendingUpload(key)) ?? false;
    if (isPending || !(await blobs.stat(key))) index.remove(name);
  }
}

function refuseNewer(formats: Readonly<Record<string, number>>): void {
  for (const [store, newest] of Object.entries(NEWEST_STORE_FORMATS)) {
    const found = formats[store];
    if (found === undefined || (Number.isSafeInteger(found) && found <= newest)) continue;
    throw new CommandFailed(
      `The store "${store}" has format ${found}, and this version reads formats up to ${newest}. ${NEWER_STORE_HELP}`,
      EXIT.config,
    );
  }
}
