import { pendingUpload, pendingUploads, type ports } from "@portico/core";
import { BLOB_COLLECTIONS } from "../blob-collections.ts";
import { doubtful, type Finding, wrong } from "./finding.ts";

/** Files and records that are compared. More would take long, and the first ones show a restored store. */
const COMPARED = 10_000;
const AT_ONCE = 20;
const PAGE = 1000;
const SHOWN = 3;

/**
 * Compares files with their records. They differ after one of the two stores was restored. Files of uploads in progress have a note
 * instead of a record, and are not reported.
 */
export async function checkBlobRecords(records: ports.Records, blobs: ports.Blobs): Promise<readonly Finding[]> {
  const unknown: string[] = [];
  const missing: string[] = [];
  const pending = records.collection(pendingUploads);
  for (const name of BLOB_COLLECTIONS) {
    const collection = records.collection({ name });
    const keys = await firstKeys(blobs, name);
    const isUnknown = async (key: string): Promise<boolean> =>
      !(await collection.get(key.slice(name.length + 1))) && !(await pending.get(pendingUpload(key)));
    unknown.push(...(await filter([...keys], isUnknown)));
    const recorded = (await firstIds(collection)).map((id) => `${name}/${id}`).filter((key) => !keys.has(key));
    missing.push(...(await filter(recorded, async (key) => !(await blobs.stat(key)))));
  }
  const findings: Finding[] = [];
  if (unknown.length > 0) {
    const why = "the record was removed, or is newer than a restored database";
    findings.push(doubtful("blobs", `${counted(unknown, "file")} no record, because ${why}: ${inWords(unknown)}`));
  }
  if (missing.length > 0) {
    const fix = "restore these files from an earlier version of the bucket or folder (docs/cluster-operations.md)";
    findings.push(wrong("blobs", `${counted(missing, "record")} no file: ${inWords(missing)}`, fix));
  }
  return findings;
}

async function firstKeys(blobs: ports.Blobs, name: string): Promise<ReadonlySet<string>> {
  const keys = new Set<string>();
  for await (const key of blobs.keys(`${name}/`)) {
    keys.add(key);
    if (keys.size === COMPARED) break;
  }
  return keys;
}

async function firstIds(collection: ports.Collection<object>): Promise<readonly string[]> {
  const ids: string[] = [];
  let page: ports.Page<object> = await collection.query({ limit: PAGE });
  for (;;) {
    ids.push(...page.items.map(({ id }) => id));
    if (page.next === undefined || ids.length >= COMPARED) return ids;
    page = await collection.query({ limit: PAGE, after: page.next });
  }
}

async function filter(keys: readonly string[], isFound: (key: string) => Promise<boolean>): Promise<readonly string[]> {
  const found: string[] = [];
  for (let from = 0; from < keys.length; from += AT_ONCE) {
    const some = keys.slice(from, from + AT_ONCE);
    const answers = await Promise.all(some.map(isFound));
    found.push(...some.filter((_, index) => answers[index]));
  }
  return found;
}

function counted({ length }: readonly string[], noun: string): string {
  return length === 1 ? `1 ${noun} has` : `${length} ${noun}s have`;
}

function inWords(keys: readonly string[]): string {
  const more = keys.length - SHOWN;
  return keys.slice(0, SHOWN).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
