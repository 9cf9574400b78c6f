import { createReadStream, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { NEWEST_STORE_FORMATS } from "@portico/adapters/stores/sqlite-formats";
import { NEWEST_DIRECTORY_FORMAT } from "../data-directory.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { printable } from "../terminal.ts";
import {
  type ArchivedEntry,
  type ArchiveFacts,
  type EntryIndex,
  entrySchema,
  factsSchema,
  HEAD,
  isEntryName,
  MANIFEST,
  parseJson,
} from "./archive-format.ts";
import { refused } from "./extract-archive.ts";

const SYNCED_AT_ONCE = 16;

/**
 * Compare everything that was extracted with the manifest, make it durable, and remove what the manifest does not name. Returns the facts.
 * Throws CommandFailed: 66 for an archive that is incomplete or changed, 78 for stores of a newer version.
 */
export async function checkManifest(file: string, folder: string, index: EntryIndex): Promise<ArchiveFacts> {
  if (!index.find(MANIFEST)) throw refused(file, "it is incomplete");
  let facts: ArchiveFacts | undefined;
  let count = 0;
  let batch: ArchivedEntry[] = [];
  const sync = async (): Promise<void> => {
    await Promise.all(batch.map((entry) => settle(join(folder, entry.name), entry.modifiedAt)));
    batch = [];
  };
  for await (const line of createInterface({ input: createReadStream(join(folder, MANIFEST)) })) {
    if (!facts) {
      facts = readFacts(file, line);
      continue;
    }
    const entry = parseJson(entrySchema, line);
    if (!entry || !isEntryName(entry.name)) throw refused(file, "its manifest cannot be read");
    const found = index.find(entry.name);
    if (!found) throw refused(file, `${entry.name} is missing`);
    if (found.size !== entry.size || found.sha256 !== entry.sha256) throw refused(file, `${entry.name} was changed`);
    index.remove(entry.name);
    count++;
    batch.push(entry);
    if (batch.length === SYNCED_AT_ONCE) await sync();
  }
  await sync();
  if (!facts || facts.entries !== count) throw refused(file, "its manifest is incomplete");
  // Blobs that were removed while the backup ran.
  for (const name of index.names()) if (name !== HEAD && name !== MANIFEST) rmSync(join(folder, name));
  return facts;
}

function readFacts(file: string, line: string): ArchiveFacts {
  const facts = parseJson(factsSchema, line);
  if (!facts) throw refused(file, "its manifest cannot be read");
  const newest: Readonly<Record<string, number>> = { ...NEWEST_STORE_FORMATS, directory: NEWEST_DIRECTORY_FORMAT };
  for (const [store, format] of Object.entries(facts.formats)) {
    if (format <= (newest[store] ?? 0)) continue;
    throw new CommandFailed(
      `The archive ${file} contains data of a newer version (${printable(store)} has format ${format}). Restore it with version ${printable(facts.version)}, which wrote it`,
      EXIT.config,
    );
  }
  return facts;
}

async function settle(path: string, modifiedAt: number): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.utimes(modifiedAt / 1000, modifiedAt / 1000);
    await file.sync();
  } finally {
    await file.close();
  }
}
