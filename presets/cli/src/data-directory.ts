import { join } from "node:path";
import { sqliteStorePaths } from "@portico/adapters/stores/sqlite";

/** The files and folders of a data directory, as absolute paths. */
export interface DataDirectory {
  readonly path: string;
  /** The records store (SQLite, with `-wal` and `-shm` files while it is open). */
  readonly records: string;
  /** Attachments and media. */
  readonly files: string;
  /** Created tokens, for settings that give none (open points 1). */
  readonly credentials: string;
  /** The format of the directory, and the version of the last start. */
  readonly format: string;
  /** Where the running service listens. Does not exist while no service runs. */
  readonly endpoints: string;
  /** The ports that the system chose for the listeners. Later starts use them again. */
  readonly ports: string;
  /** The self-signed certificate of an instance that uses HTTPS without a configured certificate. Clients can trust this file. */
  readonly certificate: string;
  readonly certificateKey: string;
  /** The backup that the directory was restored from. */
  readonly origin: string;
  /** An incomplete restore. It means nothing. */
  readonly restoring: string;
  /** A complete restore that has not been moved to its place yet. */
  readonly restored: string;
  /** The lock of the running service. */
  readonly lock: string;
}

export function dataDirectory(path: string): DataDirectory {
  return {
    path,
    ...sqliteStorePaths(path),
    format: join(path, "format.json"),
    endpoints: join(path, "endpoints.json"),
    ports: join(path, "ports.json"),
    certificate: join(path, "https-certificate.pem"),
    certificateKey: join(path, "https-key.pem"),
    origin: join(path, "restored.json"),
    restoring: join(path, ".restoring"),
    restored: join(path, ".restored"),
    lock: join(path, "lock"),
  };
}
