import { existsSync, linkSync, renameSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { openTemporaryFolder } from "@portico/adapters/stores/temporary-folder";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { syncFolder } from "./sync-folder.ts";

/** A hidden folder next to the archive, so that the finished archive is only renamed. */
const FOLDER = ".portico-backup";
const NO_LINKS: ReadonlySet<unknown> = new Set(["EPERM", "ENOTSUP", "ENOSYS", "EOPNOTSUPP"]);

/** An archive that gets its name when it is complete. */
export interface UnfinishedArchive {
  /** An unused path in a folder that only its owner can read. */
  newPath(): string;
  /** Give the finished file at `path` its name. Throws CommandFailed (73) if a file of that name exists, without `force`. */
  place(path: string): void;
  /** Remove everything unfinished. */
  close(): void;
}

/** Begins an archive, and removes what killed commands left next to it. Throws CommandFailed (73). */
export function openUnfinishedArchive(file: string, { force }: { readonly force: boolean }): UnfinishedArchive {
  const exists = (cause?: unknown) =>
    new CommandFailed(`${file} exists: choose another name, or use --force`, EXIT.cannotCreate, cause);
  if (!force && existsSync(file)) throw exists();
  const folder = openFolder(file);
  return {
    newPath: () => folder.newPath(),
    place(path) {
      try {
        if (force) renameSync(path, file);
        else linkNew(path, file);
      } catch (error) {
        throw (error as NodeJS.ErrnoException).code === "EEXIST" ? exists(error) : error;
      }
      syncFolder(dirname(file));
    },
    close: () => folder.close(),
  };
}

function openFolder(file: string) {
  const parent = dirname(file);
  try {
    if (!existsSync(parent)) throw Object.assign(new Error("No folder"), { code: "ENOENT" });
    return openTemporaryFolder(join(parent, FOLDER));
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new CommandFailed(`${file} cannot be created (${code})`, EXIT.cannotCreate, cause);
  }
}

/** Unlike a rename, a link never replaces a file that another program created in between. */
function linkNew(path: string, file: string): void {
  try {
    linkSync(path, file);
  } catch (error) {
    if (!NO_LINKS.has((error as NodeJS.ErrnoException).code)) throw error;
    renameSync(path, file);
    return;
  }
  unlinkSync(path);
}
