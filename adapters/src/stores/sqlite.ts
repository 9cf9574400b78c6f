import { join } from "node:path";
import type { Adapter, Port } from "@portico/core";
import { fileBlobs } from "../blobs/files.ts";
import { embeddedEngine } from "../engine/embedded.ts";
import { sqliteLog } from "../log/sqlite.ts";
import { sqliteRecords } from "../records/sqlite.ts";
import { type AesGcmSealingOptions, aesGcmSealing } from "../sealing/aes-gcm.ts";
import { fileSecrets } from "../secrets/files.ts";
import { keptKey } from "../signing/kept-key.ts";
import { type HmacSigningOptions, hmacSigning } from "../signing/hmac.ts";

/** Options of `sqliteStore`. */
export interface SqliteStoreOptions {
  /** The folder of all stores. It is created if it is missing. One process at a time. */
  readonly dir: string;
  /** The key that signatures derive from. Default: a generated key, stored among the secrets. */
  readonly signingKey?: HmacSigningOptions["key"];
  /** The next keys that signatures derive from. Default: `signingKey` never changes. */
  readonly signingRotation?: HmacSigningOptions["rotation"];
  /** The key for sealing. Default: a generated key, stored among the secrets. */
  readonly sealingKey?: AesGcmSealingOptions["key"];
  /** Keys that open sealed values and seal none. Default: none. */
  readonly otherSealingKeys?: AesGcmSealingOptions["otherKeys"];
  /** Fill only these ports; default: all. Ports that an adapter needs must be among them, or be filled by other adapters. */
  readonly ports?: readonly Port<any>[];
}

/**
 * All stores of the areas in one folder: the ports `records`, `log` and `engine` in one SQLite file, `blobs` as files next to it,
 * and `secrets`, with the keys of `signing` and `sealing` among them. Accepted data survives the process.
 */
export function sqliteStore({
  dir,
  signingKey = keptKey,
  signingRotation,
  sealingKey,
  otherSealingKeys,
  ports,
}: SqliteStoreOptions): readonly Adapter[] {
  const { records, files, credentials } = sqliteStorePaths(dir);
  const all: readonly Adapter[] = [
    sqliteRecords({ path: records }),
    sqliteLog({}),
    embeddedEngine({}),
    fileBlobs({ dir: files }),
    fileSecrets({ path: credentials }),
    hmacSigning({ key: signingKey, rotation: signingRotation }),
    aesGcmSealing({ key: sealingKey, otherKeys: otherSealingKeys }),
  ];
  return ports ? all.filter(({ spec }) => ports.some(({ id }) => id === spec.port.id)) : all;
}

/** Paths of a store in its folder. */
export function sqliteStorePaths(dir: string) {
  return {
    /** The SQLite file. `-wal` and `-shm` are next to it while it is open. */
    records: join(dir, "records.sqlite"),
    /** Folder of the blobs. */
    files: join(dir, "files"),
    /** The secrets. */
    credentials: join(dir, "credentials.json"),
  };
}
