import { closeSync, fsyncSync, openSync } from "node:fs";

/** New names in a folder are durable only when the folder is synced. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

const CODES = { SIGINT: 130, SIGTERM: 143 } as const;

/** Clean up and end the process on SIGINT and SIGTERM. The returned function ends this. */
export function endOnSignal(cleanUp: () => void): () => void {
  const listeners = Object.entries(CODES).map(([signal, code]) => {
    const listener = (): void => {
      cleanUp();
      process.exit(code);
    };
    process.once(signal, listener);
    return () => void process.off(signal, listener);
  });
  return () => {
    for (const remove of listeners) remove();
  };
}
