import { createHash } from "node:crypto";
import type { StoreBody } from "./store-client.ts";

/** Bytes on their way into one request, held so that it can be sent again. */
export interface Part {
  readonly isFull: boolean;
  /** Take a copy of what fits in, and tell how many bytes that is. */
  take(bytes: Uint8Array): number;
  /** Its bytes; none are taken afterwards. */
  seal(): StoreBody & { readonly chunks: Buffer[] };
}

/** A small blob costs no more than this. */
const BLOCK_BYTES = 64 * 1024;

/** `spare` are the blocks of an earlier part that is no longer needed, in their order: fresh ones would pile up until they are collected. */
export function createPart(limit: number, spare: Buffer[] = []): Part {
  const hash = createHash("sha256");
  const blocks: Buffer[] = [];
  let size = 0;
  return {
    get isFull() {
      return size === limit;
    },
    take(bytes) {
      const taken = bytes.subarray(0, limit - size);
      for (let at = 0; at < taken.byteLength;) {
        const used = size % BLOCK_BYTES;
        if (used === 0) blocks.push(spare.shift() ?? Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, limit - size)));
        const copied = taken.subarray(at, at + BLOCK_BYTES - used);
        blocks.at(-1)!.set(copied, used);
        at += copied.byteLength;
        size += copied.byteLength;
      }
      hash.update(taken);
      return taken.byteLength;
    },
    seal() {
      const last = size % BLOCK_BYTES;
      if (last > 0) blocks.push(blocks.pop()!.subarray(0, last));
      return { size, sha256: hash.digest("hex"), chunks: blocks };
    },
  };
}
