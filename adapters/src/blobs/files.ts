import { join, resolve } from "node:path";
import { defineAdapter, ports, type Scope } from "@portico/core";
import { createBlobs } from "./create-blobs.ts";
import { filePlace } from "./files/file-place.ts";
import { makeRoot } from "./files/folders.ts";
import { openTemporaryFolder } from "./files/temporary-folder.ts";
import { orUnavailable } from "./unavailable.ts";

export interface FileBlobsOptions {
  /** The folder; it need not be there yet. What is made in it, and it itself, is for its owner alone. */
  readonly dir: string;
}

/** Begins with a dot, as no key does. */
const TEMPORARY = ".tmp";

/**
 * Blobs as files of one folder, under the names of their keys. Several processes may share it, also from several containers of one
 * machine; what killed ones left half-written is taken away when the next one opens it. Links within the folder lead nowhere.
 */
export const fileBlobs = defineAdapter({
  name: "blobs/files",
  port: ports.blobs,
  needs: {},
  open: (_given, { dir }: FileBlobsOptions, scope) => orUnavailable(openFolder(resolve(dir), scope)),
});

async function openFolder(dir: string, scope: Scope): Promise<ports.Blobs> {
  const root = await makeRoot(dir);
  return createBlobs(filePlace(root, openTemporaryFolder(join(root, TEMPORARY))), scope);
}
