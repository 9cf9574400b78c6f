import { defineAdapter, ports } from "@portico/core";
import type { BlobPlace } from "./blob-place.ts";
import { createBlobs } from "./create-blobs.ts";

/** Blobs in this process's memory, gone when it closes: for tests and for trying things out. */
export const memoryBlobs = defineAdapter({
  name: "blobs/memory",
  port: ports.blobs,
  needs: { clock: ports.clock },
  open: ({ clock }, _options, scope) => createBlobs(memoryPlace(clock), scope),
});

function memoryPlace(clock: ports.Clock): BlobPlace {
  const blobs = new Map<string, { readonly bytes: Buffer; readonly modifiedAt: number }>();

  return {
    async draft(key) {
      let chunks: Buffer[] = [];
      return {
        // A copy, because the source may reuse its chunk.
        write: async (chunk) => void chunks.push(Buffer.from(chunk)),
        async place(ifAbsent) {
          if (ifAbsent && blobs.has(key)) throw new ports.BlobExists("There is a blob of that key");
          blobs.set(key, { bytes: Buffer.concat(chunks), modifiedAt: clock.now() });
        },
        discard: async () => void (chunks = []),
      };
    },
    async find(key) {
      const found = blobs.get(key);
      return found && { size: found.bytes.byteLength, modifiedAt: found.modifiedAt };
    },
    async open(key) {
      const bytes = blobs.get(key)?.bytes;
      if (bytes === undefined) return undefined;
      return {
        size: bytes.byteLength,
        read: async (position, length) => Buffer.from(bytes.subarray(position, position + length)),
        close: async () => {},
      };
    },
    remove: async (key) => blobs.delete(key),
    async *keys(prefix) {
      for (const key of blobs.keys()) if (key.startsWith(prefix)) yield key;
    },
    close: () => blobs.clear(),
  };
}
