import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { usedKeyId } from "@portico/adapters/sealing/aes-gcm";
import { fileSecrets } from "@portico/adapters/secrets/files";
import { readMark } from "@portico/adapters/stores/sqlite-mark";
import { createApp, ports } from "@portico/core";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { checkDirectoryFormat, type DataDirectory } from "../data-directory.ts";
import { CommandFailed } from "../exit-codes.ts";
import { readRestoredFrom, type RestoredFrom } from "../tell-losses.ts";
import { printable } from "../terminal.ts";
import { type Finding, fine, wrong } from "./finding.ts";

const DIRECTORY = "data directory";
const OTHERS = 0o077;
/** A busy instance can use up less than this within one day. */
const ENOUGH_BYTES = 256 * 1024 * 1024;

/** Checks that the data directory is writable and private, and that its disk has free space. */
export function checkDataDirectory(directory: DataDirectory): readonly Finding[] {
  const { path } = directory;
  if (!existsSync(path)) {
    const parent = nearestParent(path);
    if (isWritable(parent)) return [fine(DIRECTORY, `${path} will be created at the first start`), ...checkRoom(parent)];
    return [
      wrong(
        DIRECTORY,
        `${path} does not exist and cannot be created in ${parent}`,
        `set another dataDir (PORTICO_DATA_DIR), or give this user write permission: sudo install -d -m 700 -o "$(id -un)" ${path}`,
      ),
    ];
  }
  if (!statSync(path).isDirectory()) return [wrong(DIRECTORY, `${path} is not a directory`, "set another dataDir")];
  if (!isWritable(path))
    return [
      wrong(
        DIRECTORY,
        `${path} cannot be written`,
        `sudo chown -R "$(id -un)" ${path}, or set another dataDir (PORTICO_DATA_DIR)`,
      ),
    ];
  const open = [path, directory.records, directory.credentials, directory.endpoints, directory.certificateKey].filter(
    (each) => existsSync(each) && statSync(each).mode & OTHERS,
  );
  const modes = open.map((each) =>
    wrong(DIRECTORY, `other users can access ${each}`, `chmod ${each === path ? "700" : "600"} ${each}`),
  );
  return [...(modes.length > 0 ? modes : [fine(DIRECTORY, `${path} can be written and is private`)]), ...checkRoom(path)];
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

const INSTANCE_KEY = "instance key";

/** Checks that the key of the settings opens what the instance has sealed. Otherwise a start fails. */
export async function checkInstanceKey(
  { instance: { key, otherKeys } }: PlatformSettings,
  directory: DataDirectory,
): Promise<readonly Finding[]> {
  if (!existsSync(directory.credentials)) return [];
  const app = await createApp({ name: "doctor", adapters: [fileSecrets({ path: directory.credentials })] });
  try {
    const used = await usedKeyId(app.port(ports.secrets), { key, otherKeys });
    return used === undefined ? [] : [fine(INSTANCE_KEY, "it opens the stored values")];
  } catch (error) {
    if (error instanceof ports.SealingUnavailable)
      return [wrong(INSTANCE_KEY, error.message, "set instance.key (PORTICO_INSTANCE_KEY) to the key of the earlier starts")];
    if (error instanceof ports.SecretsUnavailable)
      return [wrong("secrets", error.message, `correct ${directory.credentials}, or restore it from a backup`)];
    throw error;
  } finally {
    await app.close();
  }
}

const STORE = "records store";
const RESTORE = "portico restore FILE, with an earlier backup and an empty --data-dir; some of the stored data cannot be read";

/** Checks that the stores are intact, and in a format that this version reads. Changes nothing, and may run while a service runs. */
export function checkStores(directory: DataDirectory): readonly Finding[] {
  try {
    checkDirectoryFormat(directory);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return [wrong("data directory", error.message, "install the version that wrote it")];
  }
  const marked = readMark(directory.records);
  if (!existsSync(directory.records))
    return marked === undefined ? [] : [wrong(STORE, `${directory.records} existed before and is missing`, RESTORE)];
  try {
    const database = new DatabaseSync(directory.records, { readOnly: true });
    try {
      return [checkDatabase(database, marked, readRestoredFrom(directory))];
    } finally {
      database.close();
    }
  } catch (error) {
    return [wrong(STORE, `${directory.records} cannot be read (${reasonOf(error)})`, RESTORE)];
  }
}

function checkDatabase(database: DatabaseSync, marked: number | undefined, origin: RestoredFrom | undefined): Finding {
  const [damage] = database
    .prepare("PRAGMA integrity_check(1)")
    .all()
    .map((row) => String(row["integrity_check"]));
  if (damage !== "ok") return wrong(STORE, "it is damaged", RESTORE);
  const isMade = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = '_store'").get() !== undefined;
  const version = isMade ? Number(database.prepare(`SELECT version FROM "_store"`).get()?.["version"]) : 0;
  if (marked === undefined || version >= marked) return fine(STORE, "it is intact");
  if (origin?.storeVersion === version && marked === version + 1)
    return fine(STORE, `it is intact, as restored from the backup of ${printable(origin.createdAt)}`);
  return wrong(
    STORE,
    `the last writes are missing: the store is at version ${version}, but version ${marked} was written`,
    "put its -wal file back if you have it, or restore a backup; the service also starts without the missing data, and then lookups answer `unknown`",
  );
}

/** SQLite's own message, which quotes no stored data. */
function reasonOf(error: unknown): string {
  return error instanceof Error && "errstr" in error ? String(error.errstr) : "unknown reason";
}
