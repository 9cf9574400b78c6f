import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DataDirectory } from "../data-directory.ts";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "data directory";
const OTHERS = 0o077;
/** A busy instance can use up less than this within one day. */
const ENOUGH_BYTES = 256 * 1024 * 1024;

/** Checks that the data directory is writable and private, and that its disk has free space. */
export function checkDataDirectory(directory: DataDirectory): readonly Finding[] {
  const { path } = directory;
  if (!existsSync(path)) {
    const parent = nearestParent(path);
    if (isWritable(parent)) return [fine(ABOUT, `${path} will be created at the first start`), ...checkRoom(parent)];
    return [
      wrong(
        ABOUT,
        `${path} does not exist and cannot be created in ${parent}`,
        `set another dataDir (PORTICO_DATA_DIR), or give this user write permission: sudo install -d -m 700 -o "$(id -un)" ${path}`,
      ),
    ];
  }
  if (!statSync(path).isDirectory()) return [wrong(ABOUT, `${path} is not a directory`, "set another dataDir")];
  if (!isWritable(path))
    return [
      wrong(ABOUT, `${path} cannot be written`, `sudo chown -R "$(id -un)" ${path}, or set another dataDir (PORTICO_DATA_DIR)`),
    ];
  const open = [path, directory.records, directory.credentials, directory.endpoints, directory.certificateKey].filter(
    (each) => existsSync(each) && statSync(each).mode & OTHERS,
  );
  const modes = open.map((each) =>
    wrong(ABOUT, `other users can access ${each}`, `chmod ${each === path ? "700" : "600"} ${each}`),
  );
  return [...(modes.length > 0 ? modes : [fine(ABOUT, `${path} can be written and is private`)]), ...checkRoom(path)];
}

function checkRoom(path: string): readonly Finding[] {
  const { bavail, bsize } = statfsSync(path);
  const free = bavail * bsize;
  if (free >= ENOUGH_BYTES) return [];
  return [
    wrong(
      "disk",
      `only ${Math.floor(free / 2 ** 20)} MiB are free at ${path}`,
      "free some disk space, or set a dataDir on another disk",
    ),
  ];
}

function nearestParent(path: string): string {
  const parent = dirname(path);
  return existsSync(parent) || parent === path ? parent : nearestParent(parent);
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
