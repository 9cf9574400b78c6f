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
