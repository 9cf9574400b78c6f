import type { ports } from "@portico/core";

/** A new id of a file of a run. */
export function newFileId(ids: ports.Ids): string {
  return ids.id("wfile_");
}

/** Whether a value has the form of such an id. */
export function isFileId(value: unknown): value is string {
  return typeof value === "string" && /^wfile_[A-Za-z0-9]{17,64}$/.test(value);
}
