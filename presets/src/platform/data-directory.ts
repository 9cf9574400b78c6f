import { join } from "node:path";

/** What stands in a data directory, by its absolute paths. */
export interface DataDirectory {
  readonly path: string;
  /** The records store (SQLite; `-wal` and `-shm` stand beside it while it is open). */
  readonly records: string;
  /** Attachments and media. */
  readonly files: string;
  /** Tokens that no setting gives (open points 1). */
  readonly credentials: string;
  /** Where the running service listens; there is none while it doesn't run. */
  readonly endpoints: string;
  /** Held by the running service. */
  readonly lock: string;
}

export function dataDirectory(path: string): DataDirectory {
  return {
    path,
    records: join(path, "records.sqlite"),
    files: join(path, "files"),
    credentials: join(path, "credentials.json"),
    endpoints: join(path, "endpoints.json"),
    lock: join(path, "lock"),
  };
}
