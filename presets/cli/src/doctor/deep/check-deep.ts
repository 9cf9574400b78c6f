import { existsSync } from "node:fs";
import { openSqliteReading } from "@portico/adapters/stores/sqlite-reading";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { DataDirectory } from "../../data-directory.ts";
import { type Finding, wrong } from "../finding.ts";
import { checkFiles } from "./check-files.ts";
import { checkLeftovers } from "./check-leftovers.ts";
import { checkReferences } from "./check-references.ts";
import { checkRows } from "./check-rows.ts";

/**
 * Reads everything that a data directory keeps, and reports what is damaged, missing or orphaned. Changes nothing, and may run while the
 * service runs: what looks wrong is looked at again, because a change may have been in progress.
 */
export async function checkDeep(settings: PlatformSettings, directory: DataDirectory): Promise<readonly Finding[]> {
  if (!existsSync(directory.path)) return [];
  const leftovers = checkLeftovers(settings, directory);
  if (!existsSync(directory.records)) return leftovers;
  try {
    const reading = openSqliteReading(directory.records);
    try {
      return [...checkRows(reading), ...checkReferences(reading), ...(await checkFiles(reading, directory)), ...leftovers];
    } finally {
      reading.close();
    }
  } catch (error) {
    // SQLite's own message, which quotes no stored data.
    if (!(error instanceof Error && "errstr" in error)) throw error;
    const fix = "restore an earlier backup (docs/operations.md)";
    return [wrong("records store", `it cannot be read to its end (${String(error.errstr)})`, fix), ...leftovers];
  }
}
