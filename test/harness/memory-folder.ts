import { mkdirSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { TestProject } from "vitest/node";

/** A file system in memory that nearly every Linux has. In containers it is often too small. */
const IN_MEMORY = "/dev/shm";
const NEEDED_BYTES = 2 * 1024 ** 3;
const NAME = "portico-tests-";
/** A folder of a killed run is unchanged for this long. */
const ABANDONED_MS = 3_600_000;

/**
 * The environment of tests whose temporary files need no disk: `TMPDIR` names a folder in memory, so that no test waits for a disk to
 * synchronize. Empty if the system has no such folder with enough space.
 */
export function inMemory(): Readonly<Record<string, string>> {
  return hasSpace() ? { TMPDIR: join(IN_MEMORY, `${NAME}${process.pid}`) } : {};
}

/**
 * Creates the folder before the tests of a project, and removes it after them. Projects share it. Also removes the folders of killed
 * runs, which would otherwise take memory until the system restarts.
 */
export function setup(project: TestProject): (() => void) | undefined {
  const folder = project.config.env["TMPDIR"] as string | undefined;
  if (folder === undefined) return undefined;
  removeAbandoned();
  mkdirSync(folder, { recursive: true });
  return () => rmSync(folder, { recursive: true, force: true });
}

function removeAbandoned(): void {
  for (const name of readdirSync(IN_MEMORY).filter((each) => each.startsWith(NAME))) {
    const path = join(IN_MEMORY, name);
    try {
      if (Date.now() - statSync(path).mtimeMs > ABANDONED_MS) rmSync(path, { recursive: true });
    } catch {
      // Another run removed it, or another user owns it.
    }
  }
}

function hasSpace(): boolean {
  try {
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    return bavail * bsize >= NEEDED_BYTES;
  } catch {
    return false;
  }
}
