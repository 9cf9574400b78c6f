import { createHash } from "node:crypto";
import { BLOCK_BYTES, type PartRoom } from "./block-room.ts";
import type { StoreBody } from "./store-client.ts";

/** Bytes for one request, held so that it can be sent again. */
export interface Part {
  readonly isFull: boolean;
  /** Copies as many bytes as fit with at most one wait, and returns their number. Rejects with the signal's reason. */
  take(bytes: Uint8Array, signal: AbortSignal): Promise<number>;
  /** Its bytes. None are taken afterwards. */
  seal(): StoreBody;
  /** Its bytes are not needed any more. */
  close(): void;
}

export function createPart(limit: number, room: PartRoom): Part {
  const hash = createHash("sha256");
  const blocks: Buffer[] = [];
  let size = 0;
  return {
    get isFull() {
      return size === limit;
    },
    async take(bytes, signal) {
      const used = size % BLOCK_BYTES;
      if (used === 0) blocks.push(await room.take(signal));
      const taken = bytes.subarray(0, Math.min(limit - size, BLOCK_BYTES - used));
      blocks.at(-1)!.set(taken, used);
      size += taken.byteLength;
      hash.update(taken);
      return taken.byteLength;
    },
    seal() {
      const last = size % BLOCK_BYTES;
      const chunks = last === 0 ? blocks : [...blocks.slice(0, -1), blocks.at(-1)!.subarray(0, last)];
      return { size, sha256: hash.digest("hex"), chunks };
    },
    close: () => room.close(),
  };
}
