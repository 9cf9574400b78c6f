import { readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { readFileBlobs } from "@portico/adapters/blobs/files-reading";
import { agentsAt, definitionsAt } from "@portico/presets/settings/documents-place";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { DataDirectory } from "../../data-directory.ts";
import { isDataDirectoryLocked } from "../../data-lock.ts";
import { doubtful, type Finding, withItems } from "../finding.ts";
import { NamedItems } from "./named-items.ts";

const ABOUT = "leftovers";
/** Longer than any of these files is written. */
const OLD_MS = 60_000;
/** Names of files that are renamed when they are complete. */
const IN_DATA = /^(?:[\w.-]+\.new|endpoints\.json\.\d+)$/;
const IN_FILES = /^\.format\.[0-9a-f]+$/;
const IN_DOCUMENTS = /^\.portico-(?:[0-9a-f]{16}-[0-9a-f]{16}|restored-[0-9a-f]{16})$/;
const DOCUMENTS_DEPTH = 4;

/** Lists temporary files that killed processes left. */
export function checkLeftovers({ agent, workflow }: PlatformSettings, directory: DataDirectory): readonly Finding[] {
  const found = new NamedItems();
  const addOld = (path: string): void => {
    const file = statSync(path, { throwIfNoEntry: false });
    if (file && Date.now() - file.mtimeMs > OLD_MS) found.add(path);
  };
  for (const path of readFileBlobs(directory.files).abandoned()) found.add(path);
  for (const name of namesIn(directory.files)) if (IN_FILES.test(name)) addOld(join(directory.files, name));
  for (const name of namesIn(directory.path)) if (IN_DATA.test(name)) addOld(join(directory.path, name));
  if (!isDataDirectoryLocked(directory) && namesIn(directory.restoring).length > 0) found.add(directory.restoring);
  for (const at of [agentsAt(agent), definitionsAt(workflow)]) {
    if ("dir" in at) for (const path of documentLeftovers(resolve(at.dir), DOCUMENTS_DEPTH)) addOld(path);
  }
  if (found.count === 0) return [];
  const words = `temporary files and folders of killed processes: ${found.count}. The next start or write removes most of them`;
  return [withItems(doubtful(ABOUT, words), found.names)];
}

function* documentLeftovers(folder: string, depth: number): Generator<string> {
  for (const name of namesIn(folder)) {
    const path = join(folder, name);
    if (IN_DOCUMENTS.test(name)) yield path;
    else if (depth > 1 && !name.startsWith(".") && statSync(path, { throwIfNoEntry: false })?.isDirectory())
      yield* documentLeftovers(path, depth - 1);
  }
}

/** Empty for a folder that does not exist, or that this user may not read. */
function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
