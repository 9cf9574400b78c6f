import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { ports } from "@portico/core";
import { createBlobs } from "./create-blobs.ts";
import { filePlace } from "./files/file-place.ts";
import { listAbandoned, type TemporaryFolder } from "./files/temporary-folder.ts";

/** A folder of `fileBlobs`, open for reading. */
export interface FileBlobsReading extends Pick<ports.Blobs, "stat" | "open" | "keys"> {
  /** Folders below `.tmp` that killed processes left, as paths. The next opening of `fileBlobs` removes them. */
  abandoned(): readonly string[];
}

/**
 * Reads a folder of blobs beside the service that uses it. Unlike `fileBlobs`, it creates, converts and removes nothing. A missing
 * folder has no blobs.
 */
export function readFileBlobs(dir: string): FileBlobsReading {
  const root = realPathOf(resolve(dir));
  const { stat, open, keys } = createBlobs(filePlace(root, unwritable), { onClose() {}, onReady() {} });
  return { stat, open, keys, abandoned: () => listAbandoned(join(root, ".tmp")) };
}

const unwritable: TemporaryFolder = {
  newPath() {
    throw new ports.BlobsUnavailable("The folder of blobs was opened for reading");
  },
  close() {},
};

/** An operator may have moved the folder to another disk, and linked it. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return path;
    throw new ports.BlobsUnavailable("The folder of blobs cannot be read", { cause: error });
  }
}
