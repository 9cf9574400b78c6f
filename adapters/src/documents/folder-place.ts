import { unlinkSync } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ports } from "@portico/core";
import type { DocumentPlace } from "./document-place.ts";
import { whileClaimed } from "./unstorage/claim-file.ts";
import { claimOf, createFreshFile, sweepFreshFiles, syncFolder } from "./unstorage/fresh-file.ts";
import { listFolder } from "./unstorage/list-folder.ts";
import { assertWithin, isAbsent, realPath } from "./unstorage/real-path.ts";
import { readTextFile, readTextFileSync } from "./unstorage/text-file.ts";
import { watchFolder } from "./unstorage/watch-folder.ts";

/**
 * Documents as files below `dir`. Of unstorage's own file driver, only the watching is used: it writes in place, returns errors
 * as contents, and follows links out of the folder.
 */
export function folderPlace(dir: string, depth: number): DocumentPlace {
  return {
    async read(name) {
      const path = await findFile(dir, name);
      return path === undefined ? undefined : readTextFile(path);
    },
    async replace(name, text, check) {
      const path = (await findFile(dir, name)) ?? (await makeRoom(dir, name));
      const fresh = await createFreshFile(path, text);
      try {
        // Synchronous from the reading to the rename: an edit by a person is lost only between two system calls.
        await whileClaimed(claimOf(path), (assertHeld) => {
          const current = readTextFileSync(path);
          check(current);
          assertHeld();
          if (current === undefined) fresh.placeNew();
          else fresh.place();
        });
      } catch (error) {
        fresh.discard();
        throw error;
      }
      await syncFolder(dirname(path));
      await sweepFreshFiles(path);
    },
    async remove(name, check) {
      const path = await findFile(dir, name);
      if (path === undefined) return check(undefined);
      let isRemoved = false;
      await whileClaimed(claimOf(path), (assertHeld) => {
        const current = readTextFileSync(path);
        check(current);
        if (current === undefined) return;
        assertHeld();
        unlinkSync(path);
        isRemoved = true;
      });
      if (isRemoved) await syncFolder(dirname(path));
    },
    async list() {
      const root = await realPath(dir);
      return root === undefined ? [] : listFolder(root, depth);
    },
    async fingerprint(name) {
      const path = await findFile(dir, name);
      const file = path === undefined ? undefined : await statOrAbsent(path);
      return file?.isFile() ? [file.ino, file.size, file.mtimeNs, file.ctimeNs].join(":") : undefined;
    },
    watch: (hint) => watchFolder(dir, depth, hint),
  };
}

/**
 * The real path of a document's file. Undefined for a missing document. Throws DocumentsUnavailable if the path is outside of the
 * folder, or if the folder is not one.
 */
async function findFile(dir: string, name: string): Promise<string | undefined> {
  const [root, path] = await Promise.all([realPath(dir), realPath(join(dir, name))]);
  if (root !== undefined && path !== undefined) return assertWithin(root, path);
  const isNoFolder = root !== undefined && (await statOrAbsent(root))?.isDirectory() === false;
  if (isNoFolder) throw new ports.DocumentsUnavailable("The path of the documents' folder is not a folder");
  return undefined;
}

/** Create the folders of a new document, and return the path of its file. */
async function makeRoom(dir: string, name: string): Promise<string> {
  await makeFolder(dir);
  const root = (await realPath(dir)) ?? dir;
  const folder = dirname(join(root, name));
  let nearest = folder;
  while ((await realPath(nearest)) === undefined) nearest = dirname(nearest);
  // Before any folder is created: a link in the path may lead outside.
  assertWithin(root, (await realPath(nearest)) ?? nearest);
  await makeFolder(folder);
  return join(assertWithin(root, (await realPath(folder)) ?? folder), basename(name));
}

/** Creates each folder durably in its parent. */
async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
}

function statOrAbsent(path: string) {
  return stat(path, { bigint: true }).catch((error: unknown) => {
    if (!isAbsent(error)) throw error;
    return undefined;
  });
}
