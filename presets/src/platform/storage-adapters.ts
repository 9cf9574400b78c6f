import { systemClock } from "@portico/adapters/clock/system";
import { randomIds } from "@portico/adapters/ids/random";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { fileSecrets } from "@portico/adapters/secrets/files";
import type { Adapter } from "@portico/core";
import { dataDirectory } from "./data-directory.ts";

/** Everything that is kept in one data directory, and what it is kept with: enough for whoever works beside a running service. */
export function storageAdapters(dataDir: string): readonly Adapter[] {
  const { records, credentials } = dataDirectory(dataDir);
  return [systemClock(), randomIds(), sqliteRecords({ path: records }), fileSecrets({ path: credentials })];
}
