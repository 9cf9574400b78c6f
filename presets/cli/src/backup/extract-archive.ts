import { createHash } from "node:crypto";
import { mkdirSync } from "node:fs";
import { open, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseJson } from "./parse-json.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { printable } from "../terminal/printable.ts";
import { ARCHIVE_FORMAT, HEAD, headSchema, isEntryName } from "./archive-format.ts";
import { readArchive } from "./archive-reader.ts";
import type { EntryIndex } from "./entry-index.ts";

/**
 * Write all entries of an archive below a folder, and into the index. Only regular files of names that a backup writes are accepted: no
 * link, and no path that leaves the folder. Throws CommandFailed: 66, 78 for an archive of a newer format, and the errors of the disk.
 */
export async function extractArchive(file: string, folder: string, index: EntryIndex): Promise<void> {
  let isFirst = true;
  for await (const { header, body } of readArchive(file)) {
    const { name, size, type, mtime } = header;
    if (isFirst !== (name === HEAD)) throw refused(file, isFirst ? "it is not a backup of portico" : `${HEAD} occurs twice`);
    if (type !== "file" || !isEntryName(name)) {
      throw refused(file, `no backup contains an entry such as "${printable(name)}" (${type})`);
    }
    if (index.find(name)) throw refused(file, `${name} occurs twice`);
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    const sha256 = await write(path, body);
    index.add({ name, size, sha256, modifiedAt: Math.max(0, mtime?.getTime() ?? 0) });
    if (isFirst) checkHead(file, await readFile(path, "utf8"));
    isFirst = false;
  }
  if (isFirst) throw refused(file, "it is not a backup of portico");
}

/** A line about an archive that is not one of a backup. */
export function refused(file: string, reason: string): CommandFailed {
  return new CommandFailed(`The archive ${file} is refused: ${reason}`, EXIT.noInput);
}

function checkHead(file: string, text: string): void {
  const head = parseJson(headSchema, text);
  if (!head) throw refused(file, "its first entry cannot be read");
  if (head.format <= ARCHIVE_FORMAT) return;
  throw new CommandFailed(
    `The archive ${file} has format ${head.format}, and this version reads formats up to ${ARCHIVE_FORMAT}. Restore it with version ${printable(head.version)}, which wrote it`,
    EXIT.config,
  );
}

async function write(path: string, body: AsyncIterable<Uint8Array>): Promise<string> {
  const file = await open(path, "wx", 0o600);
  try {
    const hash = createHash("sha256");
    for await (const chunk of body) {
      hash.update(chunk);
      await file.writeFile(chunk);
    }
    return hash.digest("hex");
  } finally {
    await file.close();
  }
}
