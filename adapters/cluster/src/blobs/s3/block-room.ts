/** One size for all blocks, so that the next part can reuse them. A small blob uses only one block. */
export const BLOCK_BYTES = 64 * 1024;

/** Memory for bytes being uploaded, of all uploads together. */
export interface BlockRoom {
  /** Room for one part. */
  open(): PartRoom;
}

/** Blocks for one part, which is sent when it has all of them. */
export interface PartRoom {
  /** One more block, with arbitrary content. Waits in a queue if none is free. Rejects with the signal's reason. */
  take(signal: AbortSignal): Promise<Buffer>;
  /** Give all blocks back. No block is taken afterwards. */
  close(): void;
}

interface Waiting {
  readonly part: object;
  readonly enter: (block: Buffer) => void;
}

/**
 * Room for `blocks` in all; one part has at most `blocksOfPart`. A part gives its blocks back only when it is full and sent. If
 * half-full parts held all blocks, they would wait for each other forever. Therefore the last `blocksOfPart` go only to the first
 * part in the queue, one part at a time, which can always complete.
 */
export function createBlockRoom(blocks: number, blocksOfPart: number): BlockRoom {
  const line = new Set<Waiting>();
  const free: Buffer[] = [];
  let taken = 0;
  /** The part that may take the last blocks. */
  let favoured: object | undefined;

  const give = (): Buffer => {
    taken++;
    return free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  };
  const mayTake = (part: object): boolean => {
    if (taken < blocks - blocksOfPart) return true;
    favoured ??= part;
    return favoured === part;
  };
  const letIn = (): void => {
    for (const waiting of line) {
      if (!mayTake(waiting.part)) return;
      line.delete(waiting);
      waiting.enter(give());
    }
  };
  const inLine = (part: object, signal: AbortSignal): Promise<Buffer> =>
    new Promise((resolve, reject) => {
      const leave = () => {
        line.delete(waiting);
        reject(signal.reason);
      };
      const waiting: Waiting = {
        part,
        enter(block) {
          signal.removeEventListener("abort", leave);
          resolve(block);
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      line.add(waiting);
    });

  return {
    open() {
      const part = {};
      const held: Buffer[] = [];
      return {
        async take(signal) {
          signal.throwIfAborted();
          const isNext = favoured === part || (line.size === 0 && mayTake(part));
          const block = isNext ? give() : await inLine(part, signal);
          held.push(block);
          return block;
        },
        close() {
          taken -= held.length;
          free.push(...held.splice(0));
          if (favoured === part) favoured = undefined;
          letIn();
          // No upload is active: free the unused blocks.
          if (taken === 0) free.length = 0;
        },
      };
    },
  };
}
