import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { writeMark } from "@portico/adapters/stores/sqlite-mark";
import { agentsAt, definitionsAt } from "@portico/presets/settings/documents-place";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { type DataDirectory, dataDirectory } from "../data-directory.ts";
import { lockDataDirectory, makeDataDirectory } from "../data-lock.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { refuseOtherStores } from "../instance-stores.ts";
import { readSettings } from "../read-settings.ts";
import type { RestoredFrom } from "../tell-losses.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { printable } from "../terminal.ts";
import { type ArchiveFacts, createEntryIndex, HEAD, MANIFEST } from "./archive-format.ts";
import { CLUSTER_WORDS, NOT_SAVED } from "./back-up.ts";
import { checkManifest } from "./check-manifest.ts";
import { endOnSignal, syncFolder } from "./sync-folder.ts";
import { extractArchive } from "./extract-archive.ts";
import { type DocumentPlaces, filesBelow, finishRestore, PLACES } from "./finish-restore.ts";

/** Options of `restore`. */
interface RestoreOptions {
  /** Leave agents and workflow definitions as they are. */
  readonly keepDocuments: boolean;
}

/** A finished restore. */
interface Restored {
  readonly dataDir: string;
  readonly entries: number;
  /** ISO 8601: when the backup began. */
  readonly createdAt: string;
  /** The version that wrote the backup. */
  readonly version: string;
  /** What a person should know of, as sentences. */
  readonly warnings: readonly string[];
}

/** In an empty volume, beside our own lock, and after a restore that was killed or refused. */
const NOTHING: ReadonlySet<string> = new Set(["lock", "lock-journal", ".restoring", "lost+found"]);
const SHOWN = 3;

/**
 * Put an archive of `backUp` into an empty or missing data directory, and its documents into the folders of the settings. Everything is
 * extracted and compared with the archive's manifest first. One rename then makes it valid: a kill leaves nothing or everything. Throws
 * CommandFailed: 66 for an archive that is refused, 73 for a directory with data, 75 while a service runs, 78.
 */
export async function restore(flags: SettingsFlags, file: string, { keepDocuments }: RestoreOptions): Promise<Restored> {
  const { settings } = await readSettings(flags);
  if (namesCluster(settings)) throw new CommandFailed(CLUSTER_WORDS, EXIT.config);
  refuseOtherStores(settings, NOT_SAVED);
  const directory = dataDirectory(resolve(settings.dataDir));
  makeDataDirectory(directory);
  const unlock = lockDataDirectory(directory);
  const cleanUp = (): void => rmSync(directory.restoring, { recursive: true, force: true });
  const stopListening = endOnSignal(cleanUp);
  try {
    finishRestore(directory);
    if (!isEmpty(directory)) {
      throw new CommandFailed(
        `The data directory ${directory.path} is not empty: move it away, or restore into another --data-dir`,
        EXIT.cannotCreate,
      );
    }
    const { facts, warnings } = await stage(resolve(file), directory, keepDocuments ? undefined : settings);
    renameSync(directory.restoring, directory.restored);
    syncFolder(directory.path);
    finishRestore(directory);
    const { entries, createdAt, version } = facts;
    return { dataDir: directory.path, entries, createdAt, version, warnings };
  } catch (error) {
    cleanUp();
    throw toFailure(error, directory);
  } finally {
    stopListening();
    unlock();
  }
}

function isEmpty({ path }: DataDirectory): boolean {
  return readdirSync(path).every((name) => NOTHING.has(name));
}

/** Extract everything into the folder of an unfinished restore, checked and durable. */
async function stage(
  file: string,
  { restoring }: DataDirectory,
  settings: PlatformSettings | undefined,
): Promise<{ readonly facts: ArchiveFacts; readonly warnings: readonly string[] }> {
  mkdirSync(restoring, { mode: 0o700 });
  const indexPath = join(restoring, "index.sqlite");
  const index = createEntryIndex(indexPath);
  let facts: ArchiveFacts;
  try {
    await extractArchive(file, restoring, index);
    facts = await checkManifest(file, restoring, index);
  } finally {
    index.close();
  }
  for (const path of [indexPath, join(restoring, HEAD), join(restoring, MANIFEST)]) rmSync(path);
  const { places, warnings } = settings ? planDocuments(restoring, settings) : { places: {}, warnings: [] };
  writeFileSync(join(restoring, PLACES), JSON.stringify(places), { mode: 0o600, flush: true });
  noteOrigin(join(restoring, "data"), facts);
  for (const folder of foldersBelow(restoring)) syncFolder(folder);
  return { facts, warnings };
}

/** Where documents go. Throws CommandFailed (73) if a document would be replaced by another text. */
function planDocuments(
  staged: string,
  { agent, workflow }: PlatformSettings,
): { readonly places: DocumentPlaces; readonly warnings: readonly string[] } {
  const places: Record<string, string> = {};
  const warnings: string[] = [];
  for (const [source, at] of [
    ["agents", agentsAt(agent)],
    ["workflows", definitionsAt(workflow)],
  ] as const) {
    const from = join(staged, "documents", source);
    const names = filesBelow(from);
    if (names.length === 0) continue;
    if (!("dir" in at)) {
      warnings.push(`The ${source} of the archive were not restored: the driver "${at.driver}" stores them elsewhere`);
      continue;
    }
    const folder = resolve(at.dir);
    const differing = names.filter((name) => {
      const path = join(folder, name);
      return existsSync(path) && !readFileSync(path).equals(readFileSync(join(from, name)));
    });
    if (differing.length > 0) {
      const shown = differing.slice(0, SHOWN).map(printable).join(", ");
      const more = differing.length > SHOWN ? ` and ${differing.length - SHOWN} more` : "";
      throw new CommandFailed(
        `Documents in ${folder} differ from those of the archive (${shown}${more}): move them away, or use --keep-documents`,
        EXIT.cannotCreate,
      );
    }
    places[source] = folder;
  }
  return { places, warnings };
}

/**
 * Whatever was accepted after the backup is lost. The mark says so, as after a loss of the store's last writes: the next start of any
 * version then answers `unknown` instead of `absent` for submissions that it does not find.
 */
function noteOrigin(data: string, { createdAt, version, storeVersion }: ArchiveFacts): void {
  if (storeVersion === undefined) return;
  writeMark(join(data, "records.sqlite"), storeVersion + 1);
  const origin: RestoredFrom = { createdAt, version, storeVersion };
  writeFileSync(join(data, "restored.json"), `${JSON.stringify(origin)}\n`, { mode: 0o600, flush: true });
}

function foldersBelow(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return [folder, ...entries.filter((entry) => entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name))];
}

function toFailure(error: unknown, { path }: DataDirectory): unknown {
  if (error instanceof CommandFailed || !(error instanceof Error)) return error;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return error;
  return new CommandFailed(`The data directory ${path} cannot be written (${code})`, EXIT.cannotCreate, error);
}
