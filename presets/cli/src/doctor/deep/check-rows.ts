import { findStoreFaults } from "@portico/adapters/stores/check-sqlite";
import type { SqliteReading } from "@portico/adapters/stores/sqlite-reading";
import { type Finding, fine, withItems, wrong } from "../finding.ts";
import { LISTED } from "./named-items.ts";

const ABOUT = "stored rows";
const FIX = "restore an earlier backup (docs/operations.md); the service continues without them";

/** Checks that every record and log entry can be read, and that each belongs to something. */
export function checkRows(reading: SqliteReading): readonly Finding[] {
  const faults = findStoreFaults(reading, LISTED);
  if (faults.length === 0) return [fine(ABOUT, "every record, log entry and note can be read")];
  return faults.map(({ what, count, names }) => withItems(wrong(ABOUT, `${what}: ${count}`, FIX), names));
}
