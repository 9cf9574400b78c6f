import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type FileBlobsReading, readFileBlobs } from "@portico/adapters/blobs/files-reading";
import type { SqliteReading } from "@portico/adapters/stores/sqlite-reading";
import { pendingUpload, pendingUploads } from "@portico/core";
import { BLOB_COLLECTIONS } from "../../blob-collections.ts";
import type { DataDirectory } from "../../data-directory.ts";
import { doubtful, type Finding, fine, withItems, wrong } from "../finding.ts";
import { NamedItems } from "./named-items.ts";

const ABOUT = "files";
/** An upload or a removal that is in progress ends its record or its file within this time. */
const PAUSE_MS = 500;
/** Files that share one pause. */
const BATCH = 1000;
const FIX =
  "restore a backup into another directory (portico restore FILE --data-dir OTHER --keep-documents), and copy these files from its folder `files`";

/** What a record says of its file. Media may have no digest. */
interface FileRecord {
  readonly size?: number;
  readonly sha256?: string;
}

/** Compares every file with its record: whether it exists, its size, and its SHA-256 if the record has it. */
export async function checkFiles(reading: SqliteReading, directory: DataDirectory): Promise<readonly Finding[]> {
  const blobs = readFileBlobs(directory.files);
  const [missing, changed, orphaned] = [new NamedItems(), new NamedItems(), new NamedItems()];
  let count = 0;
  async function* suspects(): AsyncGenerator<Suspect> {
    for (const collection of BLOB_COLLECTIONS) {
      for (const { id, text } of reading.records(collection)) {
        const key = `${collection}/${id}`;
        count++;
        const state = await stateOf(blobs, key, toRecord(text));
        const isStill = async () => reading.has(collection, id);
        if (state !== "whole") yield { key, found: state === "missing" ? missing : changed, isStill };
      }
      for await (const key of blobs.keys(`${collection}/`)) {
        const isStill = async () => !hasOwner(reading, collection, key) && (await blobs.stat(key)) !== undefined;
        if (!hasOwner(reading, collection, key)) yield { key, found: orphaned, isStill };
      }
    }
  }
  for await (const { key, found } of confirmed(suspects())) found.add(key);

  const findings: Finding[] = [];
  if (missing.count > 0) findings.push(withItems(wrong(ABOUT, `records without a file: ${missing.count}`, FIX), missing.names));
  if (changed.count > 0)
    findings.push(withItems(wrong(ABOUT, `files that differ from their records: ${changed.count}`, FIX), changed.names));
  if (missing.count + changed.count === 0) findings.push(fine(ABOUT, `compared with their records: ${count}`));
  if (orphaned.count > 0) {
    const words = `files without a record: ${orphaned.count}. Every user who knows the id of such a media file can read it`;
    findings.push(withItems(doubtful(ABOUT, words), orphaned.names));
  }
  return findings;
}

/** A file that may be wrong, or that may be about to change. */
interface Suspect {
  readonly key: string;
  readonly found: NamedItems;
  isStill(): Promise<boolean>;
}

/** Looks a second time, after changes that were in progress have ended. */
async function* confirmed(suspects: AsyncIterable<Suspect>): AsyncGenerator<Suspect> {
  let batch: Suspect[] = [];
  const look = async function* (): AsyncGenerator<Suspect> {
    if (batch.length === 0) return;
    await sleep(PAUSE_MS);
    for (const suspect of batch) if (await suspect.isStill()) yield suspect;
    batch = [];
  };
  for await (const suspect of suspects) {
    batch.push(suspect);
    if (batch.length === BATCH) yield* look();
  }
  yield* look();
}

function hasOwner(reading: SqliteReading, collection: string, key: string): boolean {
  return reading.has(collection, key.slice(collection.length + 1)) || reading.has(pendingUploads.name, pendingUpload(key));
}

async function stateOf(
  blobs: FileBlobsReading,
  key: string,
  { size, sha256 }: FileRecord,
): Promise<"whole" | "missing" | "changed"> {
  const found = await blobs.open(key);
  if (!found) return "missing";
  if (size !== undefined && found.size !== size) {
    found.stream.destroy();
    return "changed";
  }
  if (sha256 === undefined) {
    found.stream.destroy();
    return "whole";
  }
  const hash = createHash("sha256");
  try {
    for await (const chunk of found.stream as AsyncIterable<Uint8Array>) hash.update(chunk);
  } catch {
    // The disk cannot read it.
    return "changed";
  }
  return hash.digest("hex") === sha256 ? "whole" : "changed";
}

/** Records that cannot be read are another finding. */
function toRecord(text: string): FileRecord {
  try {
    return JSON.parse(text) as FileRecord;
  } catch {
    return {};
  }
}
