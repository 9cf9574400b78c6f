import { createReadStream, createWriteStream, statSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { type ArchiveFacts, MANIFEST } from "./archive-format.ts";
import type { BackupTarget } from "./backup-target.ts";

/** Add the last entry: the facts, and a line for each entry of the index. Other entries of the archive do not count. */
export async function writeManifest(facts: ArchiveFacts, { writer, index, newPath }: BackupTarget): Promise<void> {
  const path = newPath();
  await pipeline(
    function* () {
      yield `${JSON.stringify(facts)}\n`;
      for (const { name, size, sha256, modifiedAt } of index.all()) {
        yield `${JSON.stringify({ name, size, sha256, modifiedAt })}\n`;
      }
    },
    createWriteStream(path, { mode: 0o600 }),
  );
  const { size, mtimeMs } = statSync(path);
  await writer.add({ name: MANIFEST, size, modifiedAt: Math.floor(mtimeMs) }, createReadStream(path));
}
