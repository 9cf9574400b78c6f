import { DatabaseSync } from "node:sqlite";
import { createBlobs } from "@portico/adapters/blobs/create-blobs";
import { defineAdapter, ports } from "@portico/core";
import { databasePlace } from "./database-place.ts";

export interface SampleNameBlobsOptions {
  /** The database file. */
  readonly path: string;
}

/**
 * Blobs in chunks in a SQL database. It is SQLite here: replace it with your store. `createBlobs` checks keys, limits and ranges, hashes the
 * bytes and waits for open work on close, so that all stores obey the same rules.
 */
export const sampleNameBlobs = defineAdapter({
  name: "blobs/sample-name",
  port: ports.blobs,
  needs: {},
  open: (_given, { path }: SampleNameBlobsOptions, scope) =>
    createBlobs(
      databasePlace(() => openDatabase(path)),
      scope,
    ),
});

function openDatabase(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: 5_000 });
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  return database;
}
