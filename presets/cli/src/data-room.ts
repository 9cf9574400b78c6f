import { statfsSync } from "node:fs";
import { SHORTAGE_WORDS } from "@portico/core";
import type { DataDirectory } from "./data-directory.ts";

/** A commit writes a few pages of 4 KiB. With less free space than this, the next accepted request may not fit. */
const LEAST_BYTES = 256 * 1024;

/** Why a data directory cannot store anything: its disk is full. Undefined if there is free space, or if the free space is unknown. */
export function describeFullDisk({ path }: DataDirectory): string | undefined {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize < LEAST_BYTES ? `${SHORTAGE_WORDS.storage_full}: no disk space is left at ${path}` : undefined;
  } catch {
    return undefined;
  }
}
