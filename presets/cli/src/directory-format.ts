import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { stepsFrom } from "@portico/core";
import { VERSION } from "@portico/presets/platform/version";
import * as v from "valibot";
import type { DataDirectory } from "./data-directory.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/**
 * Steps from one format of a data directory to the next. A new format is needed when an earlier version would misread some data, although it
 * could open every store: then that version refuses the whole directory. Records that earlier versions wrote stay readable.
 * If a kill interrupts a step, the next start repeats it. So every step must be idempotent.
 */
const STEPS: readonly ((directory: DataDirectory) => void)[] = [];

const formatSchema = v.object({ format: v.number(), version: v.optional(v.string()) });

/**
 * Throws CommandFailed: 78 for a data directory of a newer version, 69 while a restore is unfinished. A directory that is missing or has
 * no mark has format 1.
 */
export function checkDirectoryFormat(directory: DataDirectory): void {
  if (existsSync(directory.restored)) {
    const words = `The restore of ${directory.path} was interrupted: start the service, or restore again, to finish it`;
    throw new CommandFailed(words, EXIT.unavailable);
  }
  stepsOf(directory);
}

/** The format of a data directory. Throws CommandFailed (78) if its mark cannot be read. */
export function readDirectoryFormat(directory: DataDirectory): number {
  return readMark(directory)?.format ?? 1;
}

/** The newest format of a data directory. */
export const NEWEST_DIRECTORY_FORMAT: number = STEPS.length + 1;

/** Bring the data directory to the newest format and record the format. Call it only while holding the lock. Throws CommandFailed: 78, 73. */
export function settleDirectoryFormat(directory: DataDirectory): void {
  const found = readMark(directory);
  for (const step of stepsOf(directory, found)) step(directory);
  const newest = { format: NEWEST_DIRECTORY_FORMAT, version: VERSION };
  if (found?.format === newest.format && found.version === newest.version) return;
  try {
    replaceFile(directory.format, `${JSON.stringify(newest)}\n`);
  } catch (cause) {
    throw new CommandFailed(`The data directory ${directory.path} cannot be written`, EXIT.cannotCreate, cause);
  }
}

function stepsOf(directory: DataDirectory, found = readMark(directory)): typeof STEPS {
  try {
    return stepsFrom(`The data directory ${directory.path}`, found?.format ?? 1, STEPS);
  } catch (cause) {
    const by = found?.version === undefined ? "" : ` (${found.version})`;
    throw new CommandFailed(`${(cause as Error).message}${by}. ${NEWER_STORE_HELP}`, EXIT.config, cause);
  }
}

/** What to do about a store of a newer version. */
export const NEWER_STORE_HELP = "Start the version that wrote it, or restore an earlier backup";

function readMark({ format: path }: DataDirectory): v.InferOutput<typeof formatSchema> | undefined {
  try {
    return v.parse(formatSchema, JSON.parse(readFileSync(path, "utf8")));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new CommandFailed(`${path} does not contain the data directory's format`, EXIT.config, cause);
  }
}

function replaceFile(path: string, text: string): void {
  const fresh = `${path}.new`;
  const file = openSync(fresh, "w", 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(fresh, path);
}
