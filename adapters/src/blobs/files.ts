import { join, resolve } from "node:path";
import { defineAdapter, ports, type Scope } from "@portico/core";
import { createBlobs } from "./create-blobs.ts";
import { filePlace } from "./files/file-place.ts";
import { settleFormat } from "./files/folder-format.ts";
import { makeRoot } from "./files/folders.ts";
import { openTemporaryFolder } from "./files/temporary-folder.ts";
import { orUnavailable } from "./unavailable.ts";

/** Options of `fileBlobs`. */
export interface FileBlobsOptions {
  /** The folder. It is created if it is missing. Only its owner can access it and its content. */
  readonly dir: string;
}

/** Begins with a dot, which no key does. */
const TEMPORARY = ".tmp";

/**
 * Blobs as files of one folder, under the names of their keys. Several processes may share it, also from several containers on
 * one machine. The next opening removes files that killed processes left unfinished. Links within the folder are not followed.
 */
export const fileBlobs = defineAdapter({
  name: "blobs/files",
  port: ports.blobs,
  needs: {},
  place: ({ dir }: FileBlobsOptions) => resolve(dir),
  open: (_given, { dir }: FileBlobsOptions, scope) => orUnavailable(openFolder(resolve(dir), scope)),
});

async function openFolder(dir: string, scope: Scope): Promise<ports.Blobs> {
  const root = await makeRoot(dir);
  await settleFormat(root);
  return createBlobs(filePlace(root, openTemporaryFolder(join(root, TEMPORARY))), scope);
}
