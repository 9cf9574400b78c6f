import { createHash, hash } from "node:crypto";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type FileBlobsReading, readFileBlobs } from "@portico/adapters/blobs/files-reading";
import { findStoreFaults } from "@portico/adapters/stores/check-sqlite";
import { openSqliteReading, type SqliteReading } from "@portico/adapters/stores/sqlite-reading";
import { pendingUpload, pendingUploads } from "@portico/core";
import { agentsAt, definitionsAt } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { BLOB_COLLECTIONS } from "../attachments.ts";
import type { DataDirectory } from "../data-directory.ts";
import { isDataDirectoryLocked } from "../data-lock.ts";
import { doubtful, type Finding, fine, withItems, wrong } from "./finding.ts";

/**
 * Reads everything that a data directory keeps, and reports what is damaged, missing or orphaned. Changes nothing, and may run while the
 * service runs: what looks wrong is looked at again, because a change may have been in progress.
 */
export async function checkDeep(settings: PlatformSettings, directory: DataDirectory): Promise<readonly Finding[]> {
  if (!existsSync(directory.path)) return [];
  const leftovers = checkLeftovers(settings, directory);
  if (!existsSync(directory.records)) return leftovers;
  try {
    const reading = openSqliteReading(directory.records);
    try {
      return [...checkRows(reading), ...checkReferences(reading), ...(await checkFiles(reading, directory)), ...leftovers];
    } finally {
      reading.close();
    }
  } catch (error) {
    // SQLite's own message, which quotes no stored data.
    if (!(error instanceof Error && "errstr" in error)) throw error;
    const fix = "restore an earlier backup (docs/operations.md)";
    return [wrong("records store", `it cannot be read to its end (${String(error.errstr)})`, fix), ...leftovers];
  }
}

const ROWS = "stored rows";
const FIX_ROWS = "restore an earlier backup (docs/operations.md); the service continues without them";

/** Checks that every record and log entry can be read, and that each belongs to something. */
function checkRows(reading: SqliteReading): readonly Finding[] {
  const faults = findStoreFaults(reading, LISTED);
  if (faults.length === 0) return [fine(ROWS, "every record, log entry and note can be read")];
  return faults.map(({ what, count, names }) => withItems(wrong(ROWS, `${what}: ${count}`, FIX_ROWS), names));
}

const REFERENCES = "references";
const FIX_REFERENCES = "restore an earlier backup (docs/operations.md), and report this as a defect";

/** Each record of the first collection has one of the same id in the second. Both are written in one commit. */
const SAME_ID: readonly (readonly [from: string, to: string])[] = [
  ["run-list", "runs"],
  ["workflow-run-list", "workflow-runs"],
  ["workflow-bound-runs", "workflow-runs"],
  ["workflow-open-runs", "workflow-runs"],
  ["workflow-runs", "workflow-run-list"],
];

/** Checks that records that name each other both exist, and that the quotas of users count what is stored. */
function checkReferences(reading: SqliteReading): readonly Finding[] {
  const { database } = reading;
  // In one snapshot: each commit of the service changes both sides.
  database.exec("BEGIN");
  try {
    const lost = new NamedItems();
    for (const [from, to] of SAME_ID) {
      if (!reading.hasTable(from)) continue;
      const missing = reading.hasTable(to) ? `WHERE NOT EXISTS (SELECT 1 FROM "${to}" AS t WHERE t.id = f.id)` : "";
      for (const row of database.prepare(`SELECT id FROM "${from}" AS f ${missing}`).iterate())
        lost.add(`${from}/${String(row["id"])}, without its record in ${to}`);
    }
    const miscounted = miscountedUsers(reading);
    return [
      ...(lost.count > 0
        ? [withItems(wrong(REFERENCES, `records that miss another record: ${lost.count}`, FIX_REFERENCES), lost.names)]
        : []),
      ...(miscounted.count > 0
        ? [
            withItems(
              wrong(REFERENCES, `quotas that differ from the stored attachments: ${miscounted.count}`, FIX_REFERENCES),
              miscounted.names,
            ),
          ]
        : []),
      ...(lost.count + miscounted.count === 0 ? [fine(REFERENCES, "records that name each other exist")] : []),
      ...unusedDefinitions(reading),
    ];
  } finally {
    database.exec("ROLLBACK");
  }
}

function miscountedUsers({ database, hasTable }: SqliteReading): NamedItems {
  const found = new NamedItems();
  if (!hasTable("attachments") || !hasTable("attachment-usage")) return found;
  const stored = database.prepare(
    `SELECT value ->> 'userId' AS user, count(*) AS count, sum(value ->> 'size') AS bytes
     FROM "attachments" WHERE json_valid(value) GROUP BY user`,
  );
  const usage = database.prepare(
    `SELECT value ->> 'count' AS count, value ->> 'bytes' AS bytes FROM "attachment-usage" WHERE id = ?`,
  );
  let users = 0;
  for (const { user, count, bytes } of stored.iterate()) {
    users++;
    const counted = usage.get(`user_${hash("sha256", String(user))}`);
    if (counted?.["count"] !== count || counted?.["bytes"] !== bytes) found.add(`user ${String(user)}`);
  }
  const used = database.prepare(`SELECT count(*) AS count FROM "attachment-usage" WHERE value ->> 'count' > 0`).get();
  if (found.count === 0 && used?.["count"] !== users) found.add("a user without attachments");
  return found;
}

/** Harmless: a user may start the same definition again. */
function unusedDefinitions({ database, hasTable }: SqliteReading): readonly Finding[] {
  if (!hasTable("workflow-definitions") || !hasTable("workflow-runs")) return [];
  const unused = new NamedItems();
  const sql = `SELECT id, value ->> 'document' AS document FROM "workflow-definitions"
    WHERE json_valid(value) AND value ->> 'usedUntil' < ?
    AND id NOT IN (SELECT value ->> 'definition' FROM "workflow-runs" WHERE json_valid(value))`;
  for (const row of database.prepare(sql).iterate(Date.now())) unused.add(`${String(row["document"])} (${String(row["id"])})`);
  if (unused.count === 0) return [];
  const words = `definitions that no run uses: ${unused.count}. The service removes them when older runs are removed`;
  return [withItems(fine("workflow definitions", words), unused.names)];
}

const LEFTOVERS = "leftovers";
/** Longer than any of these files is written. */
const OLD_MS = 60_000;
/** Names of files that are renamed when they are complete. */
const IN_DATA = /^(?:[\w.-]+\.new|endpoints\.json\.\d+)$/;
const IN_FILES = /^\.format\.[0-9a-f]+$/;
const IN_DOCUMENTS = /^\.portico-(?:[0-9a-f]{16}-[0-9a-f]{16}|restored-[0-9a-f]{16})$/;
const DOCUMENTS_DEPTH = 4;

/** Lists temporary files that killed processes left. */
function checkLeftovers({ agent, workflow }: PlatformSettings, directory: DataDirectory): readonly Finding[] {
  const found = new NamedItems();
  const addOld = (path: string): void => {
    const file = statSync(path, { throwIfNoEntry: false });
    if (file && Date.now() - file.mtimeMs > OLD_MS) found.add(path);
  };
  for (const path of readFileBlobs(directory.files).abandoned()) found.add(path);
  for (const name of namesIn(directory.files)) if (IN_FILES.test(name)) addOld(join(directory.files, name));
  for (const name of namesIn(directory.path)) if (IN_DATA.test(name)) addOld(join(directory.path, name));
  if (!isDataDirectoryLocked(directory) && namesIn(directory.restoring).length > 0) found.add(directory.restoring);
  for (const at of [agentsAt(agent), definitionsAt(workflow)]) {
    if ("dir" in at) for (const path of documentLeftovers(resolve(at.dir), DOCUMENTS_DEPTH)) addOld(path);
  }
  if (found.count === 0) return [];
  const words = `temporary files and folders of killed processes: ${found.count}. The next start or write removes most of them`;
  return [withItems(doubtful(LEFTOVERS, words), found.names)];
}

function* documentLeftovers(folder: string, depth: number): Generator<string> {
  for (const name of namesIn(folder)) {
    const path = join(folder, name);
    if (IN_DOCUMENTS.test(name)) yield path;
    else if (depth > 1 && !name.startsWith(".") && statSync(path, { throwIfNoEntry: false })?.isDirectory())
      yield* documentLeftovers(path, depth - 1);
  }
}

/** Empty for a folder that does not exist, or that this user may not read. */
function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

const FILES = "files";
/** An upload or a removal that is in progress ends its record or its file within this time. */
const PAUSE_MS = 500;
/** Files that share one pause. */
const BATCH = 1000;
const FIX_FILES =
  "restore a backup into another directory (portico restore FILE --data-dir OTHER --keep-documents), and copy these files from its folder `files`";

/** What a record says of its file. Media may have no digest. */
interface FileRecord {
  readonly size?: number;
  readonly sha256?: string;
}

/** Compares every file with its record: whether it exists, its size, and its SHA-256 if the record has it. */
async function checkFiles(reading: SqliteReading, directory: DataDirectory): Promise<readonly Finding[]> {
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
  if (missing.count > 0)
    findings.push(withItems(wrong(FILES, `records without a file: ${missing.count}`, FIX_FILES), missing.names));
  if (changed.count > 0)
    findings.push(withItems(wrong(FILES, `files that differ from their records: ${changed.count}`, FIX_FILES), changed.names));
  if (missing.count + changed.count === 0) findings.push(fine(FILES, `compared with their records: ${count}`));
  if (orphaned.count > 0) {
    const words = `files without a record: ${orphaned.count}. Every user who knows the id of such a media file can read it`;
    findings.push(withItems(doubtful(FILES, words), orphaned.names));
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

/** Names that one finding lists. Memory and output must not grow with the damage. */
const LISTED = 1000;

/** Counts names, and keeps the first of them. */
class NamedItems {
  readonly names: string[] = [];
  #count = 0;

  get count(): number {
    return this.#count;
  }

  add(name: string): void {
    this.#count++;
    if (this.names.length < LISTED) this.names.push(name);
  }
}
