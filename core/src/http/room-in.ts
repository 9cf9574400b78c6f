import type { Writable } from "node:stream";

/** Resolves when a stream accepts more data after a `write` that returned false, or when its reader has left. */
export function roomIn(stream: Writable): Promise<void> {
  if (stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = () => {
      stream.off("drain", settle).off("close", settle);
      resolve();
    };
    stream.on("drain", settle).on("close", settle);
  });
}
