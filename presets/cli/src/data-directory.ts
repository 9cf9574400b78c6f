import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sqliteStorePaths } from "@portico/adapters/stores/sqlite";
import { SHORTAGE_WORDS, stepsFrom } from "@portico/core";
import { VERSION } from "@portico/presets/platform/version";
import * as v from "valibot";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/** The files and folders of a data directory, as absolute paths. */
export interface DataDirectory {
  readonly path: string;
  /** The records store (SQLite, with `-wal` and `-shm` files while it is open). */
  readonly records: string;
  /** Attachments and media. */
  readonly files: string;
  /** Created tokens, for settings that give none (open points 1). */
  readonly credentials: string;
  /** The format of the directory, and the version of the last start. */
  readonly format: string;
  /** Where the running service listens. Does not exist while no service runs. */
  readonly endpoints: string;
  /** The ports that the system chose for the listeners. Later starts use them again. */
  readonly ports: string;
  /** The self-signed certificate of an instance that uses HTTPS without a configured certificate. Clients can trust this file. */
  readonly certificate: string;
  readonly certificateKey: string;
  /** The backup that the directory was restored from. */
  readonly origin: string;
  /** An incomplete restore. It means nothing. */
  readonly restoring: string;
  /** A complete restore that has not been moved to its place yet. */
  readonly restored: string;
  /** The lock of the running service. */
  readonly lock: string;
}

export function dataDirectory(path: string): DataDirectory {
  return {
    path,
    ...sqliteStorePaths(path),
    format: join(path, "format.json"),
    endpoints: join(path, "endpoints.json"),
    ports: join(path, "ports.json"),
    certificate: join(path, "https-certificate.pem"),
    certificateKey: join(path, "https-key.pem"),
    origin: join(path, "restored.json"),
    restoring: join(path, ".restoring"),
    restored: join(path, ".restored"),
    lock: join(path, "lock"),
  };
}

/** A commit writes a few pages of 4 KiB. With less free space than this, the next accepted request may not fit. */
const LEAST_BYTES = 256 * 1024;

/** Why a data directory cannot store anything: its disk is full. Undefined if there is free space, or if the free space is unknown. */
export function describeFullDisk({ path }: DataDirectory): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize < LEAST_BYTES ? `${SHORTAGE_WORDS.storage_full}: no disk space is left at ${path}` : undefined;
  } catch {
    return undefined;
  }
}

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
