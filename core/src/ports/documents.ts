import { defineManyPort, type ManyPort } from "../port.ts";

/**
 * Named text documents that people edit at the same time: `agent.json`, workflow definitions. An app has one source for each purpose,
 * told apart by `id`: `agents`, `workflows`. Every function throws TypeError for a name that is none (`isDocumentName`).
 */
export interface Documents {
  readonly id: string;
  /** Undefined where there is none. Throws DocumentsUnavailable, also for what is no UTF-8 text or is over DOCUMENT_BYTES. */
  read(name: string): Promise<Document | undefined>;
  /**
   * Write a whole document. `expected` is the version that was read, or `"absent"`: if it does not hold any more, also because a person
   * saved the file meanwhile, DocumentConflict is thrown and nothing is written. Whole and durable when it resolves, as far as the place
   * can be. Throws RangeError for a text over DOCUMENT_BYTES, TypeError for one that UTF-8 cannot hold, and DocumentsUnavailable.
   */
  write(name: string, text: string, expected: string): Promise<Document>;
  /** True if there was one. Throws DocumentConflict, unless `expected` is `"absent"` and there is none, and DocumentsUnavailable. */
  remove(name: string, expected: string): Promise<boolean>;
  /** Names of all documents, in the order of their UTF-8 bytes. Throws DocumentsUnavailable. */
  list(): Promise<readonly string[]>;
  /**
   * Told of every change: of one made here before its promise resolves, of one that another program makes soon after. Names may come
   * twice, and a burst may come as one. Resolves when changes from now on are seen; the returned function ends it. `changed` must not
   * throw.
   */
  watch(changed: (name: string) => void): Promise<() => Promise<void>>;
}

export interface Document {
  readonly name: string;
  readonly text: string;
  /** Opaque; the same text at the same place has the same version. */
  readonly version: string;
}

/** Most bytes of a document's text in UTF-8. */
export const DOCUMENT_BYTES = 16 * 1024 * 1024;

const LONGEST_NAME_BYTES = 255;
const SEGMENTS = /^[^./\\:?\p{Cc}][^/\\:?\p{Cc}]*(?:\/[^./\\:?\p{Cc}][^/\\:?\p{Cc}]*)*$/u;

/**
 * Whether a text can name a document: 1-255 bytes of UTF-8 in segments divided by `/`; no segment is empty or begins with a dot, and
 * none has `\`, `:`, `?` or a control character (several stores take `:` for `/` and cut at `?`, so that two names would be one).
 */
export function isDocumentName(name: string): boolean {
  return SEGMENTS.test(name) && name.isWellFormed() && new TextEncoder().encode(name).length <= LONGEST_NAME_BYTES;
}

/** Thrown when what a write expected does not hold. */
export class DocumentConflict extends Error {
  override readonly name = "DocumentConflict";
}

/** Thrown when the place cannot be read or written. */
export class DocumentsUnavailable extends Error {
  override readonly name = "DocumentsUnavailable";
}

export const documents: ManyPort<Documents> = defineManyPort<Documents>("documents");
