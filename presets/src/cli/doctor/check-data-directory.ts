import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DataDirectory } from "../../platform/data-directory.ts";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "data directory";
const OTHERS = 0o077;
/** Less than this fills up within a busy day. */
const ENOUGH_BYTES = 256 * 1024 * 1024;

/** Whether the data directory can be written, is private, and has room. */
export function checkDataDirectory(directory: DataDirectory): readonly Finding[] {
  const { path } = directory;
  if (!existsSync(path)) {
    const parent = nearestParent(path);
    if (isWritable(parent)) return [fine(ABOUT, `${path} will be made at the first start`), ...checkRoom(parent)];
    return [
      wrong(
        ABOUT,
        `${path} is not there and cannot be made in ${parent}`,
        "set another dataDir, or give this user the right to write there",
      ),
    ];
  }
  if (!statSync(path).isDirectory()) return [wrong(ABOUT, `${path} is no directory`, "set another dataDir")];
  if (!isWritable(path))
    return [wrong(ABOUT, `${path} cannot be written`, `give this user the right to write it, or set another dataDir`)];
  const open = [path, directory.records, directory.credentials, directory.endpoints].filter(
    (each) => existsSync(each) && statSync(each).mode & OTHERS,
  );
  const modes = open.map((each) => wrong(ABOUT, `others can get at ${each}`, `chmod ${each === path ? "700" : "600"} ${each}`));
  return [...(modes.length > 0 ? modes : [fine(ABOUT, `${path} can be written and is private`)]), ...checkRoom(path)];
}

function checkRoom(path: string): readonly Finding[] {
  const { bavail, bsize } = statfsSync(path);
  const free = bavail * bsize;
  if (free >= ENOUGH_BYTES) return [];
  return [
    wrong("disk", `only ${Math.floor(free / 2 ** 20)} MiB are free at ${path}`, "make room, or set a dataDir on another disk"),
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
