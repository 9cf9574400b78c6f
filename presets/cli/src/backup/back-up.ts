import { createReadStream, createWriteStream, existsSync, linkSync, renameSync, statSync, unlinkSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { readAgentCopies } from "@portico/adapters/stores/agent-documents";
import type { DocumentReading, DocumentsAt } from "@portico/adapters/stores/documents-at";
import { openTemporaryFolder } from "@portico/adapters/stores/temporary-folder";
import { readWorkflowDocuments } from "@portico/adapters/stores/workflow-documents";
import { findShortage, ports } from "@portico/core";
import { otherDocuments } from "@portico/presets/platform/stores-file";
import { VERSION } from "@portico/presets/platform/version";
import { agentsAt, definitionsAt } from "@portico/presets/settings/documents-place";
import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { checkDirectoryFormat, dataDirectory } from "../data-directory.ts";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import { instanceStores, refuseOtherStores } from "../instance-stores.ts";
import { readSettings } from "../read-settings.ts";
import type { SettingsFlags } from "../settings-flags.ts";
import { printable } from "../terminal.ts";
import {
  ARCHIVE_FORMAT,
  type ArchiveFacts,
  createEntryIndex,
  DOCUMENTS,
  HEAD,
  MANIFEST,
  DOCUMENT_SOURCES,
  type DocumentSource,
} from "./archive-format.ts";
import { type BackupTarget, createArchiveWriter } from "./archive-writer.ts";
import { collectData } from "./collect-data.ts";
import { endOnSignal, syncFolder } from "./sync-folder.ts";

/** Options of `backUp`. */
interface BackupOptions {
  /** Replace an existing archive. */
  readonly force: boolean;
  /** Compress the archive. */
  readonly gzip: boolean;
}

/** A finished backup. */
interface Backup {
  /** The archive. */
  readonly file: string;
  readonly bytes: number;
  readonly entries: number;
  /** ISO 8601: when the backup began. The archive has everything that was accepted until then. */
  readonly createdAt: string;
  /** What the archive does not have and a person should know of, as sentences. */
  readonly warnings: readonly string[];
}

/** Said by the commands in the folder of a cluster. */
export const CLUSTER_WORDS =
  "This instance is a cluster: its data is in PostgreSQL and in the place of blobs. Back it up and restore it with the tools of those (docs/cluster-operations.md)";

/** Said by the commands that copy a data directory. */
export const NOT_SAVED =
  "this command copies only the stores of a data directory. Save and restore these with their own tools (docs/another-store.md)";

/**
 * Copy a data directory and the documents of its instance into one archive, also while its service runs. The copy is consistent: it has
 * the state of one moment after the call. Throws CommandFailed: 66, 69, 73, 78, also for an instance with other stores.
 */
export async function backUp(flags: SettingsFlags, file: string, { force, gzip }: BackupOptions): Promise<Backup> {
  const { settings } = await readSettings(flags);
  if (namesCluster(settings)) throw new CommandFailed(CLUSTER_WORDS, EXIT.config);
  refuseOtherStores(settings, NOT_SAVED);
  const directory = dataDirectory(settings.dataDir);
  if (!existsSync(directory.path)) throw new CommandFailed(`There is no data directory ${directory.path}`, EXIT.noInput);
  checkDirectoryFormat(directory);

  const path = resolve(file);
  const unfinished = openUnfinishedArchive(path, { force });
  const stopListening = endOnSignal(() => unfinished.close());
  try {
    const createdAt = new Date();
    const archivePath = unfinished.newPath();
    const index = createEntryIndex(unfinished.newPath());
    const writer = createArchiveWriter(archivePath, { gzip });
    try {
      const modifiedAt = createdAt.getTime();
      const facts = { format: ARCHIVE_FORMAT, version: VERSION, createdAt: createdAt.toISOString() };
      const head = Buffer.from(`${JSON.stringify(facts)}\n`);
      await writer.add({ name: HEAD, size: head.length, modifiedAt }, [head]);
      const target = { writer, index, newPath: () => unfinished.newPath() };
      // Before the records: a webhook in a document that is newer than the records would have no secret.
      const leftOut = await collectDocuments(settings, target);
      const { formats, storeVersion, warnings } = await collectData(directory, target);
      const entries = index.count();
      await writeManifest({ ...facts, formats, entries, ...(storeVersion !== undefined && { storeVersion }) }, target);
      await writer.finish();
      unfinished.place(archivePath);
      return {
        file: path,
        bytes: statSync(path).size,
        entries,
        createdAt: facts.createdAt,
        warnings: [...leftOut, ...warnings],
      };
    } catch (error) {
      await writer.abort(error);
      throw toFailure(error, path);
    } finally {
      index.close();
    }
  } finally {
    stopListening();
    unfinished.close();
  }
}

/** Errors of files and of SQLite become a line. */
function toFailure(error: unknown, file: string): unknown {
  if (error instanceof CommandFailed || !(error instanceof Error)) return error;
  const { code, syscall } = error as NodeJS.ErrnoException;
  // The copy of the records stands beside the archive, so that the archive's disk is full.
  if ("errcode" in error && findShortage(error) === "storage_full")
    return new CommandFailed(`${file} cannot be written (ENOSPC)`, EXIT.cannotCreate, error);
  if ("errstr" in error) {
    const words = `The records store cannot be copied (${String(error.errstr)}); portico doctor says more`;
    return new CommandFailed(words, EXIT.unavailable, error);
  }
  if (syscall === undefined && error.name !== "BlobsUnavailable") return error;
  return new CommandFailed(`${file} cannot be written (${code ?? error.message})`, EXIT.cannotCreate, error);
}

/** Add the agents, with their skills, and workflow definitions of the settings' folders. Returns sentences about those that are left out. */
async function collectDocuments(settings: PlatformSettings, target: BackupTarget): Promise<readonly string[]> {
  const stores = instanceStores(settings);
  return [
    ...(stores ? otherDocuments(stores) : []).map(
      ({ port, kind }) => `Some ${port === "agents" ? "agents" : "documents"} are not in the archive: ${kind} keeps them`,
    ),
    ...(await collect("agents", agentsAt(settings.agent), readAgentCopies, target)),
    ...(await collect("workflows", definitionsAt(settings.workflow), readWorkflowDocuments, target)),
  ];
}

async function collect(
  source: DocumentSource,
  at: DocumentsAt,
  open: (at: DocumentsAt, leftOut: (name: string) => void) => Promise<DocumentReading>,
  { writer, index }: BackupTarget,
): Promise<readonly string[]> {
  if (!("dir" in at)) return [`The ${source} are not in the archive: the driver "${at.driver}" stores them elsewhere`];
  const warnings: string[] = [];
  const documents = await open(at, (name) =>
    warnings.push(`The file ${printable(name)} of a skill is not in the archive: it is not text of at most 1 MiB`),
  );
  try {
    for (const name of (await documents.list()).filter((each) => DOCUMENT_SOURCES[source].test(each))) {
      try {
        const found = await documents.read(name);
        if (!found) continue;
        const bytes = Buffer.from(found.text);
        const entry = { name: `${DOCUMENTS}${source}/${name}`, size: bytes.length, modifiedAt: Date.now() };
        index.add(await writer.add(entry, [bytes]));
      } catch (error) {
        // One unreadable document does not prevent the backup of all data. A service cannot read it either.
        if (!(error instanceof ports.DocumentsUnavailable)) throw error;
        warnings.push(`The document ${printable(name)} of the ${source} cannot be read, and is not in the archive`);
      }
    }
  } finally {
    await documents.close();
  }
  return warnings;
}

/** A hidden folder next to the archive, so that the finished archive is only renamed. */
const FOLDER = ".portico-backup";
const NO_LINKS: ReadonlySet<unknown> = new Set(["EPERM", "ENOTSUP", "ENOSYS", "EOPNOTSUPP"]);

/** An archive that gets its name when it is complete. */
interface UnfinishedArchive {
  /** An unused path in a folder that only its owner can read. */
  newPath(): string;
  /** Give the finished file at `path` its name. Throws CommandFailed (73) if a file of that name exists, without `force`. */
  place(path: string): void;
  /** Remove everything unfinished. */
  close(): void;
}

/** Begins an archive, and removes what killed commands left next to it. Throws CommandFailed (73). */
function openUnfinishedArchive(file: string, { force }: { readonly force: boolean }): UnfinishedArchive {
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

/** Add the last entry: the facts, and a line for each entry of the index. Other entries of the archive do not count. */
async function writeManifest(facts: ArchiveFacts, { writer, index, newPath }: BackupTarget): Promise<void> {
  const path = newPath();
  await pipeline(
    function* () {
      yield `${JSON.stringify(facts)}\n`;
      for (const { name, size, sha256, modifiedAt } of index.all()) {
        yield `${JSON.stringify({ name, size, sha256, modifiedAt })}\n`;
      }
    },
    createWriteStream(path, { mode: 0o600 }),
  );
  const { size, mtimeMs } = statSync(path);
  await writer.add({ name: MANIFEST, size, modifiedAt: Math.floor(mtimeMs) }, createReadStream(path));
}
