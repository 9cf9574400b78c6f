import { Readable } from "node:stream";
import { defineAdapter, ports } from "@portico/core";

/** A file from a program. */
export interface MemoryUserFile {
  readonly userId: string;
  readonly name: string;
  readonly mimeType: string;
  readonly bytes: Uint8Array;
}

/** Options of `memoryUserFiles`. */
export interface MemoryUserFilesOptions {
  /** By media ID. The tables may be changed while the app runs. */
  readonly media?: ReadonlyMap<string, MemoryUserFile>;
  /** By file reference. */
  readonly attachments?: ReadonlyMap<string, MemoryUserFile>;
}

/** Users' files from a program: for tests, and for hosts that store files elsewhere. */
export const memoryUserFiles = defineAdapter({
  name: "user-files/memory",
  port: ports.userFiles,
  needs: {},
  open(_given, { media, attachments }: MemoryUserFilesOptions): ports.UserFiles {
    const find = (files: ReadonlyMap<string, MemoryUserFile> | undefined, userId: string, id: string) => {
      const file = files?.get(id);
      if (file?.userId !== userId) return undefined;
      const { name, mimeType, bytes } = file;
      return {
        ...{ name, mimeType, size: bytes.length },
        async open(signal: AbortSignal) {
          signal.throwIfAborted();
          return Readable.from([Buffer.from(bytes)]);
        },
      };
    };
    return {
      id: "memory",
      media: async (userId, mediaId) => find(media, userId, mediaId),
      attachment: async (userId, fileReference) => find(attachments, userId, fileReference),
    };
  },
});
