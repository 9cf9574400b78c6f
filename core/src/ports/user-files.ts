import type { Readable } from "node:stream";
import { defineManyPort, type ManyPort } from "../grammar/port.ts";
import type { Write } from "./records.ts";

/**
 * The files that users have uploaded, for the areas that use them. An app has one source. Without a source, it accepts no files.
 * Functions throw UserFilesUnavailable.
 */
export interface UserFiles {
  readonly id: string;
  /** Media by its ID. Undefined if the ID is invalid, the media is missing, or this user may not read it. */
  media(userId: string, mediaId: string): Promise<UserFile | undefined>;
  /** An attachment by the `fileReference` of its receipt. Undefined in the same cases. */
  attachment(userId: string, fileReference: string): Promise<UserFile | undefined>;
  /**
   * The writes that keep these files while `work` is open. Write them to the app's records, in the commit that accepts the work: it throws
   * RecordConflict if a file was removed meanwhile. Undefined if this user may not read one of the files. Sources that never remove a file
   * leave it out.
   */
  hold?(userId: string, work: string, files: UsedFiles): Promise<readonly Write[] | undefined>;
  /** The writes that end what `hold` began, for the commit that ends the work. Required with `hold`. */
  release?(work: string, files: UsedFiles): readonly Write[];
}

/** Files that a work refers to. */
export interface UsedFiles {
  readonly mediaIds: readonly string[];
  readonly fileReferences: readonly string[];
}

/** One file of a user. */
export interface UserFile {
  readonly name: string;
  /** The type declared by the uploader; for media, the verified type. */
  readonly mimeType: string;
  /** Bytes. */
  readonly size: number;
  /**
   * All bytes of the file. Read the stream to its end or destroy it. Throws UserFilesUnavailable, also if the bytes are missing.
   */
  open(signal: AbortSignal): Promise<Readable>;
}

/** Thrown when the files are unreachable. */
export class UserFilesUnavailable extends Error {
  override readonly name = "UserFilesUnavailable";
}

/** The port of files of users. */
export const userFiles: ManyPort<UserFiles> = defineManyPort<UserFiles>("userFiles");
