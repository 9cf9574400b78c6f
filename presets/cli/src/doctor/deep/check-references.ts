import { hash } from "node:crypto";
import type { SqliteReading } from "@portico/adapters/stores/sqlite-reading";
import { type Finding, fine, withItems, wrong } from "../finding.ts";
import { NamedItems } from "./named-items.ts";

const ABOUT = "references";
const FIX = "restore an earlier backup (docs/operations.md), and report this as a defect";

/** Each record of the first collection has one of the same id in the second. Both are written in one commit. */
const SAME_ID: readonly (readonly [from: string, to: string])[] = [
  ["run-list", "runs"],
  ["workflow-run-list", "workflow-runs"],
  ["workflow-bound-runs", "workflow-runs"],
  ["workflow-open-runs", "workflow-runs"],
  ["workflow-runs", "workflow-run-list"],
];

/** Checks that records that name each other both exist, and that the quotas of users count what is stored. */
export function checkReferences(reading: SqliteReading): readonly Finding[] {
  const { database } = reading;
  // In one snapshot: each commit of the service changes both sides.
  database.exec("BEGIN");
  try {
    const lost = new NamedItems();
    for (const [from, to] of SAME_ID) {
      if (!reading.hasTable(from)) continue;
      const missing = reading.hasTable(to) ? `WHERE NOT EXISTS (SELECT 1 FROM "${to}" AS t WHERE t.id = f.id)` : "";
      for (const row of database.prepare(`SELECT id FROM "${from}" AS f ${missing}`).iterate())
        lost.add(`${from}/${String(row["id"])}, without its record in ${to}`);
    }
    const miscounted = miscountedUsers(reading);
    return [
      ...(lost.count > 0 ? [withItems(wrong(ABOUT, `records that miss another record: ${lost.count}`, FIX), lost.names)] : []),
      ...(miscounted.count > 0
        ? [withItems(wrong(ABOUT, `quotas that differ from the stored attachments: ${miscounted.count}`, FIX), miscounted.names)]
        : []),
      ...(lost.count + miscounted.count === 0 ? [fine(ABOUT, "records that name each other exist")] : []),
      ...unusedDefinitions(reading),
    ];
  } finally {
    database.exec("ROLLBACK");
  }
}

function miscountedUsers({ database, hasTable }: SqliteReading): NamedItems {
  const found = new NamedItems();
  if (!hasTable("attachments") || !hasTable("attachment-usage")) return found;
  const stored = database.prepare(
    `SELECT value ->> 'userId' AS user, count(*) AS count, sum(value ->> 'size') AS bytes
     FROM "attachments" WHERE json_valid(value) GROUP BY user`,
  );
  const usage = database.prepare(
    `SELECT value ->> 'count' AS count, value ->> 'bytes' AS bytes FROM "attachment-usage" WHERE id = ?`,
  );
  let users = 0;
  for (const { user, count, bytes } of stored.iterate()) {
    users++;
    const counted = usage.get(`user_${hash("sha256", String(user))}`);
    if (counted?.["count"] !== count || counted?.["bytes"] !== bytes) found.add(`user ${String(user)}`);
  }
  const used = database.prepare(`SELECT count(*) AS count FROM "attachment-usage" WHERE value ->> 'count' > 0`).get();
  if (found.count === 0 && used?.["count"] !== users) found.add("a user without attachments");
  return found;
}

/** Harmless: a user may start the same definition again. */
function unusedDefinitions({ database, hasTable }: SqliteReading): readonly Finding[] {
  if (!hasTable("workflow-definitions") || !hasTable("workflow-runs")) return [];
  const unused = new NamedItems();
  const sql = `SELECT id, value ->> 'document' AS document FROM "workflow-definitions"
    WHERE json_valid(value) AND value ->> 'usedUntil' < ?
    AND id NOT IN (SELECT value ->> 'definition' FROM "workflow-runs" WHERE json_valid(value))`;
  for (const row of database.prepare(sql).iterate(Date.now())) unused.add(`${String(row["document"])} (${String(row["id"])})`);
  if (unused.count === 0) return [];
  const words = `definitions that no run uses: ${unused.count}. The service removes them when older runs are removed`;
  return [withItems(fine("workflow definitions", words), unused.names)];
}
