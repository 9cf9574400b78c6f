import { defineManyPort, type ManyPort } from "../grammar/port.ts";

/**
 * Named text documents that people may edit at any time: `agent.json`, workflow definitions. An app has one source for each
 * purpose, identified by `id`: `agents`, `workflows`. Every function throws TypeError for an invalid name (`isDocumentName`).
 */
export interface Documents {
  readonly id: string;
  /** Whether other processes write here, too. Default: false. What they change is reported soon after it; `read` finds it at once. */
  readonly isShared?: boolean;
  /** Whether the storage takes no writes: `write` and `remove` then throw DocumentsUnavailable. Default: false. */
  readonly isReadOnly?: boolean;
  /**
   * Undefined for a missing document. Throws DocumentsUnavailable, also for a document that is not UTF-8 text or exceeds
   * DOCUMENT_BYTES.
   */
  read(name: string): Promise<Document | undefined>;
  /**
   * Write a whole document. `expected` is the version that was read, or `"absent"`. If it no longer matches, for example because
   * a person saved the file meanwhile, DocumentConflict is thrown and nothing is written. The document is complete and durable
   * when it resolves, as far as the storage can guarantee it. Throws RangeError for a text over DOCUMENT_BYTES, TypeError for a
   * text that is not well-formed Unicode, and DocumentsUnavailable.
   */
  write(name: string, text: string, expected: string): Promise<Document>;
  /**
   * True if the document existed. Throws DocumentConflict if `expected` does not match (`"absent"` matches a missing document),
   * and DocumentsUnavailable.
   */
  remove(name: string, expected: string): Promise<boolean>;
  /** Names of all documents, in the order of their UTF-8 bytes. Throws DocumentsUnavailable. */
  list(): Promise<readonly string[]>;
  /**
   * Calls `changed` for every change. For a change made here, before its promise resolves; for a change by another program, soon
   * after it. A name may be reported twice, and several quick changes may be reported once. Resolves when all later changes will
   * be seen. The returned function ends the watch. `changed` must not throw.
   */
  watch(changed: (name: string) => void): Promise<() => Promise<void>>;
}

/** One document. */
export interface Document {
  readonly name: string;
  readonly text: string;
  /** Opaque. The same text under the same name has the same version. */
  readonly version: string;
}

/** Maximum size of a document's text in bytes of UTF-8. */
export const DOCUMENT_BYTES = 16 * 1024 * 1024;

const LONGEST_NAME_BYTES = 255;
const SEGMENTS = /^[^./\\:?\p{Cc}][^/\\:?\p{Cc}]*(?:\/[^./\\:?\p{Cc}][^/\\:?\p{Cc}]*)*$/u;

/**
 * Whether a text is a valid document name: 1-255 bytes of UTF-8 in segments that are separated by `/`. No segment is empty or
 * begins with a dot, and none has `\`, `:`, `?` or a control character: several stores treat `:` as `/` and cut names at `?`, so
 * that two names would be the same.
 */
export function isDocumentName(name: string): boolean {
  return SEGMENTS.test(name) && name.isWellFormed() && new TextEncoder().encode(name).length <= LONGEST_NAME_BYTES;
}

/** Thrown when the expected version of a write does not match. */
export class DocumentConflict extends Error {
  override readonly name = "DocumentConflict";
}

/** Thrown when the storage cannot be read or written. */
export class DocumentsUnavailable extends Error {
  override readonly name = "DocumentsUnavailable";
  /** What is wrong with the document itself, as the end of a sentence: `is not UTF-8 text`. It has no part of the text. */
  readonly fault: string | undefined;

  constructor(message?: string, options: ErrorOptions & { readonly fault?: string | undefined } = {}) {
    super(message, options);
    this.fault = options.fault;
  }
}

/** The port of sources of documents. */
export const documents: ManyPort<Documents> = defineManyPort<Documents>("documents");
