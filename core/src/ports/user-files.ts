import type { Readable } from "node:stream";
import { defineManyPort, type ManyPort } from "../port.ts";

/**
 * What users have uploaded, for the areas that use it. An app has one source, or none and then takes no files. Functions throw
 * UserFilesUnavailable.
 */
export interface UserFiles {
  readonly id: string;
  /** Media by its id; undefined for what is none, missing, or not this user's to read. */
  media(userId: string, mediaId: string): Promise<UserFile | undefined>;
  /** An attachment by what its receipt calls `fileReference`; undefined in the same way. */
  attachment(userId: string, fileReference: string): Promise<UserFile | undefined>;
}

export interface UserFile {
  readonly name: string;
  /** What the uploader said that it is; of media, what was checked. */
  readonly mimeType: string;
  /** Bytes. */
  readonly size: number;
  /** All of its bytes; the stream is to be read to its end or destroyed. Throws UserFilesUnavailable, also where they are gone. */
  open(signal: AbortSignal): Promise<Readable>;
}

/** Thrown when the files cannot be reached now. */
export class UserFilesUnavailable extends Error {
  override readonly name = "UserFilesUnavailable";
}

export const userFiles: ManyPort<UserFiles> = defineManyPort<UserFiles>("userFiles");
