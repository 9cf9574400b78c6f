import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A disk of a few MiB, which a test may fill. */
export interface SmallDisk {
  readonly path: string;
  remove(): void;
}

/**
 * Mounts a small disk in memory, if this user may, or `sudo` allows it. Otherwise undefined, and the tests are skipped. With `CI` set, a
 * missing disk is an error.
 */
export function smallDisk(mebibytes: number): SmallDisk | undefined {
  const path = mkdtempSync(join(tmpdir(), "portico-disk-"));
  const as = [[], ["sudo", "-n"]].find((before) =>
    isDone([...before, "mount", "-t", "tmpfs", "-o", `size=${mebibytes}m,mode=1777`, "tmpfs", path]),
  );
  if (as) {
    const remove = (): void => {
      isDone([...as, "umount", "-l", path]);
      rmSync(path, { recursive: true, force: true });
    };
    return { path, remove };
  }
  rmSync(path, { recursive: true });
  if (process.env.CI) throw new Error("No small disk can be mounted, neither as this user nor with sudo");
  console.warn("Tests of full disks are skipped: no small disk can be mounted, neither as this user nor with sudo");
  return undefined;
}

function isDone([command = "", ...args]: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
