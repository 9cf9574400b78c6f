import { ports, record } from "@portico/core";
import * as v from "valibot";
import { DOCUMENT_SOURCES, type DocumentSource } from "../cluster/document-sources.ts";

/** The format of archives. A version refuses archives of a newer format. */
export const ARCHIVE_FORMAT = 1;

/** The first entry: it says what the archive is before anything else is read. */
export const HEAD = "portico-backup.json";
/** The last entry. Without it, the archive is incomplete. Lines of JSON: first the facts, then one line for each entry. */
export const MANIFEST = "manifest.jsonl";
/** Prefix of the files of the data directory. */
export const DATA = "data/";
/** Prefix of blobs. */
export const FILES = `${DATA}files/`;
/** The copy of the records store. */
export const RECORDS = `${DATA}records.sqlite`;
/** Prefix of agents and workflow definitions: `documents/agents/`, `documents/workflows/`. */
export const DOCUMENTS = "documents/";

/** Small files of the data directory that are copied. Other files are locks, addresses of the running service, or made again. */
export const SMALL_FILES = ["credentials.json", "ports.json", "format.json", "https-certificate.pem", "https-key.pem"] as const;
const FOLDER_MARK = ".format";

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));

/** The content of the first entry. Later formats may add keys. */
export const headSchema = v.object({ format: count, version: v.string(), createdAt: v.string() });

/** The first line of the manifest. */
export const factsSchema = v.strictObject({
  ...headSchema.entries,
  /** Of the stores in the archive, by name. `directory` is the format of the whole data directory. */
  formats: record(v.string(), count),
  /** The version of the records store: the number of its last write. */
  storeVersion: v.optional(count),
  entries: count,
});
/** The facts of an archive. */
export type ArchiveFacts = v.InferOutput<typeof factsSchema>;

/** Each further line of the manifest. */
export const entrySchema = v.strictObject({
  name: v.string(),
  size: count,
  sha256: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  /** Milliseconds since 1970. Files of earlier versions show it as the time of their creation. */
  modifiedAt: count,
});

/** One archived file. */
export type ArchivedEntry = v.InferOutput<typeof entrySchema>;

/** Whether a backup writes entries of this name. No such name leaves the folder that the archive is restored to. */
export function isEntryName(name: string): boolean {
  if (name === HEAD || name === MANIFEST || name === RECORDS || name === FILES + FOLDER_MARK) return true;
  if (name.startsWith(FILES)) return ports.isBlobKey(name.slice(FILES.length));
  if (name.startsWith(DATA)) return (SMALL_FILES as readonly string[]).includes(name.slice(DATA.length));
  return toDocument(name) !== undefined;
}

/** The source and name of an archived document. */
export function toDocument(name: string): { readonly source: DocumentSource; readonly name: string } | undefined {
  const [, source, rest] = /^documents\/(agents|workflows)\/(.+)$/s.exec(name) ?? [];
  if (source === undefined || rest === undefined) return undefined;
  const of = source as DocumentSource;
  return ports.isDocumentName(rest) && DOCUMENT_SOURCES[of].test(rest) ? { source: of, name: rest } : undefined;
}
