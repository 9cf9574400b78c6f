import { hash } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import * as v from "valibot";
import type { DataDirectory } from "../data-directory.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { parseJson, type DocumentSource } from "./archive-format.ts";
import { syncFolder } from "./sync-folder.ts";

/** Beside the restored entries: the folders that the documents go to. */
export const PLACES = "places.json";
/** Of documents, by source. A source without a folder is not restored. */
const placesSchema = v.strictObject({ agents: v.optional(v.string()), workflows: v.optional(v.string()) });

/** The folders of documents, by source. */
export type DocumentPlaces = v.InferOutput<typeof placesSchema>;

/**
 * Move a complete restore to its place, and remove an incomplete one. A kill at any moment leaves the rest for the next call. Call it only
 * while holding the lock of the data directory. Throws CommandFailed (73).
 */
export function finishRestore({ path, restoring, restored }: DataDirectory): void {
  try {
    rmSync(restoring, { recursive: true, force: true });
    if (!existsSync(restored)) return;
    const data = join(restored, "data");
    for (const name of namesIn(data)) renameSync(join(data, name), join(path, name));
    const text = existsSync(join(restored, PLACES)) ? readFileSync(join(restored, PLACES), "utf8") : "{}";
    placeDocuments(join(restored, "documents"), parseJson(placesSchema, text) ?? {}, hash("sha256", path).slice(0, 16));
    // The data must have its names on the disk before the only other copy of the names is removed.
    syncFolder(path);
    rmSync(restored, { recursive: true });
    syncFolder(path);
  } catch (cause) {
    throw new CommandFailed(
      `The restore of ${path} cannot be finished (${(cause as NodeJS.ErrnoException).code})`,
      EXIT.cannotCreate,
      cause,
    );
  }
}

/** All files below a folder, as relative names. */
export function filesBelow(folder: string): readonly string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

/** `mark` names temporary files. The same call after a kill has the same mark, and so overwrites the rest. */
function placeDocuments(staged: string, places: DocumentPlaces, mark: string): void {
  for (const [source, folder] of Object.entries(places) as [DocumentSource, string][]) {
    const from = join(staged, source);
    for (const name of filesBelow(from)) {
      const path = join(folder, name);
      // Equal, or written by a person since the restore began: then it stays.
      if (existsSync(path)) continue;
      mkdirSync(dirname(path), { recursive: true });
      const fresh = join(dirname(path), `.portico-restored-${mark}`);
      writeDurably(fresh, readFileSync(join(from, name)));
      renameSync(fresh, path);
      syncFolder(dirname(path));
    }
  }
}

function writeDurably(path: string, bytes: Buffer): void {
  rmSync(path, { force: true });
  const file = openSync(path, "wx", 0o644);
  try {
    writeFileSync(file, bytes);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function namesIn(folder: string): readonly string[] {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder) : [];
}
