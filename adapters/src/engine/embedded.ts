import { resolve } from "node:path";
import { defineAdapter, findStoreTooNew, ports, type Scope } from "@portico/core";
import { type SqliteStore, sqliteStoreOf } from "../records/sqlite/store.ts";
import { openSqliteBackend } from "../records/sqlite.ts";
import { createEngine } from "./create-engine.ts";
import { openSqliteJournal } from "./embedded/sqlite-journal.ts";
import type { Journal } from "./journal.ts";
import { writeRecordsFirst } from "./records-first.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const LEASE_MS = 15_000;
const PARK_AFTER_MS = 1000;

/** Options of `embeddedEngine`. */
export interface EmbeddedEngineOptions {
  /**
   * A database file only for the journal. Required if the records are not in `records/sqlite`. Without it, the journal is in the
   * records' own file, and accepting work and writing its records is one commit. With it, the records are written first.
   */
  readonly path?: string;
  /**
   * Processes of one owner take over the work from each other at once, so that a restart does not wait. A process of another
   * owner waits until the lease has expired. Default: one owner for all.
   */
  readonly owner?: string;
  /** How long the lease of an unresponsive process protects its work from other owners. Default: 15 seconds. */
  readonly leaseMs?: number;
  /** How long ended work is remembered: its ID is then a duplicate, and its status is available. Default: 24 hours. */
  readonly keepEndedMs?: number;
  /** Work is parked after it has only waited for this time. Default: 1 second. Infinity: never. */
  readonly parkAfterMs?: number;
}

/**
 * Durable work in one process, with a journal in SQLite. Opening throws EngineUnavailable when the journal cannot be opened or
 * was written by a newer version, and TypeError without both a `path` and a records store to share.
 */
export const embeddedEngine = defineAdapter({
  name: "engine/embedded",
  port: ports.engine,
  needs: { records: ports.records, clock: ports.clock, telemetry: ports.telemetry },
  place: ({ path }: EmbeddedEngineOptions) => (path === undefined ? undefined : resolve(path)),
  open({ records, clock, telemetry }, options: EmbeddedEngineOptions, scope): ports.Engine {
    const engine = createEngine({
      journal: journalFor(records, options.path, scope),
      clock,
      log: telemetry.log,
      owner: options.owner ?? "embedded",
      leaseMs: options.leaseMs ?? LEASE_MS,
      keepEndedMs: options.keepEndedMs ?? DAY_MS,
      parkAfterMs: options.parkAfterMs ?? PARK_AFTER_MS,
    });
    scope.onClose(() => engine.close());
    return engine;
  },
});

function journalFor(records: ports.Records, path: string | undefined, scope: Scope): Journal {
  if (path !== undefined) return writeRecordsFirst(openSqliteJournal(openStore(path, scope)), records);
  const shared = sqliteStoreOf(records);
  if (shared) return openSqliteJournal(shared);
  throw new TypeError("The embedded engine needs a path for its journal, because the records are not in SQLite");
}

/** A store without records. */
function openStore(path: string, scope: Scope): SqliteStore {
  try {
    const backend = openSqliteBackend(path, scope);
    return { ...backend, transact: (work) => backend.transact(work, []) };
  } catch (cause) {
    throw new ports.EngineUnavailable(findStoreTooNew(cause)?.message ?? "The engine's journal cannot be opened", { cause });
  }
}
