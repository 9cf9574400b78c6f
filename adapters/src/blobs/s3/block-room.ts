/** One size for all, so that the blocks of one part serve the next; a small blob costs no more than this. */
export const BLOCK_BYTES = 64 * 1024;

/** Memory for what is on its way into a store, of all uploads together. */
export interface BlockRoom {
  /** What one part has of it. */
  open(): PartRoom;
}

/** Blocks for one part, which is sent when it has all of them. */
export interface PartRoom {
  /** One more block, with whatever is in it; in line where there is none just now. Rejects with the signal's reason. */
  take(signal: AbortSignal): Promise<Buffer>;
  /** Give all of them back. Nothing more is taken afterwards. */
  close(): void;
}

interface Waiting {
  readonly part: object;
  readonly enter: (block: Buffer) => void;
}

/**
 * Room for `blocks` in all, of which one part has at most `blocksOfPart`. A part gives its blocks back only when it is full and sent: if parts
 * that are half full had them all, each would wait for the others for ever. So the last `blocksOfPart` are for whoever is first in line, and
 * for one part at a time: that one always gets on.
 */
export function createBlockRoom(blocks: number, blocksOfPart: number): BlockRoom {
  const line = new Set<Waiting>();
  const free: Buffer[] = [];
  let taken = 0;
  /** The part that may have the last of them. */
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
          // Nobody uploads anything: what nobody needs for now is the process's again.
          if (taken === 0) free.length = 0;
        },
      };
    },
  };
}
