import type { DatabaseSync } from "node:sqlite";

/** The journal's statements, each prepared once. */
export type Statements = ReturnType<typeof prepareStatements>;

const OPEN_WORK = "work, id, kind, attempt, reason";
const RECORD = `kind, state, attempt, accepted AS acceptedAt, ended AS endedAt, output, error`;

/** Prepare every statement. The tables must exist. */
export function prepareStatements(database: DatabaseSync) {
  const sql = (text: string) => database.prepare(text);
  return {
    owner: sql(`SELECT fence, owner, until FROM "_engine_owner"`),
    claim: sql(`UPDATE "_engine_owner" SET fence = fence + 1, owner = ?, until = ? RETURNING fence`),
    renew: sql(`UPDATE "_engine_owner" SET until = ?`),
    lastWork: sql(`SELECT max(work) AS last FROM "_engine_work"`),
    ends: sql(
      `SELECT min(place) AS first, max(iif(place < ?, place, NULL)) AS lastReturned, max(place) AS last
       FROM "_engine_work" WHERE place IS NOT NULL`,
    ),

    create: sql(
      `INSERT INTO "_engine_work" (work, id, kind, key, state, place, attempt, accepted) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO NOTHING`,
    ),
    begin: sql(
      `UPDATE "_engine_work" SET state = 'executing', place = NULL, attempt = attempt + (awaited IS NULL), awaited = NULL
       WHERE work = ? AND state = 'lined' RETURNING ${OPEN_WORK}`,
    ),
    lined: sql(`SELECT ${OPEN_WORK} FROM "_engine_work" WHERE work = ? AND state = 'lined'`),
    // 'cancelled' takes precedence over any later result of the work, but not over 'unclosed'.
    end: sql(
      `UPDATE "_engine_work" SET place = NULL, ended = ?1, output = iif(reason IS NULL, ?3, NULL), error = coalesce(reason, ?4),
         state = iif(reason IS NULL OR ?2 = 'unclosed', ?2, 'cancelled')
       WHERE work = ?5 AND (ended IS NULL OR state = 'unclosed') RETURNING kind, key`,
    ),
    askToCancel: sql(`UPDATE "_engine_work" SET reason = ? WHERE work = ? AND reason IS NULL`),

    isExecuting: sql(`SELECT 1 FROM "_engine_work" WHERE work = ? AND state = 'executing'`),
    openById: sql(`SELECT work, attempt, state, awaited FROM "_engine_work" WHERE id = ? AND ended IS NULL`),
    record: sql(`SELECT ${RECORD} FROM "_engine_work" WHERE id = ?`),
    line: sql(`SELECT kind, work, place FROM "_engine_work" WHERE kind = ? AND place > ? ORDER BY place LIMIT ?`),
    firstOfKey: sql(`SELECT work, state FROM "_engine_work" WHERE kind = ? AND key = ? AND ended IS NULL ORDER BY work LIMIT ?`),
    /** Whether a key has more open works than a limit. */
    hasMoreOpen: sql(`SELECT 1 FROM "_engine_work" WHERE kind = ? AND key = ? AND ended IS NULL LIMIT 1 OFFSET ?`),
    enterLine: sql(`UPDATE "_engine_work" SET state = 'lined', place = ? WHERE work = ?`),

    // Places count backwards from the head of the queue: these works began before all queued ones.
    resume: sql(
      `UPDATE "_engine_work" INDEXED BY "_engine_executing" SET state = 'lined', place = ?1 - (?2 - work)
       WHERE kind = ?3 AND state = 'executing'`,
    ),
    interrupted: sql(
      `SELECT ${OPEN_WORK} FROM "_engine_work" WHERE kind = ? AND ended IS NULL AND (state = 'executing' OR attempt > 0) ORDER BY work`,
    ),
    unclosed: sql(`SELECT ${OPEN_WORK} FROM "_engine_work" WHERE kind = ? AND state = 'unclosed' ORDER BY work`),
    // Work that is being closed must not begin.
    leaveLine: sql(
      `UPDATE "_engine_work" SET state = 'executing', place = NULL, due = NULL, awaited = NULL
       WHERE work = ? AND state IN ('lined', 'parked')`,
    ),

    // Decided here: earlier signals are stored already, and later ones find the work parked.
    park: sql(
      `UPDATE "_engine_work" SET state = 'parked', place = NULL, due = ?2, awaited = ?3
       WHERE work = ?1 AND reason IS NULL AND NOT EXISTS (
         SELECT 1 FROM "_engine_notes"
         WHERE work = ?1 AND kind = 'signal' AND name IN (SELECT value FROM json_each(?3)) AND number > ?4)`,
    ),
    comeBack: sql(
      `UPDATE "_engine_work" SET state = 'lined', place = ?, due = NULL, awaited = coalesce(awaited, '[]') WHERE work = ? RETURNING kind`,
    ),
    due: sql(`SELECT work FROM "_engine_work" WHERE due <= ? ORDER BY due LIMIT ?`),
    nextDue: sql(`SELECT min(due) AS due FROM "_engine_work" WHERE due IS NOT NULL`),

    note: sql(
      `INSERT INTO "_engine_notes" (work, kind, name, number, state, value) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET state = excluded.state, value = excluded.value`,
    ),
    notes: sql(`SELECT kind, name, number, state, value FROM "_engine_notes" WHERE work = ? ORDER BY kind, name, number`),
    forgetNotes: sql(`DELETE FROM "_engine_notes" WHERE work = ?`),

    prunable: sql(`SELECT 1 FROM "_engine_work" WHERE ended < ? AND state <> 'unclosed' LIMIT 1`),
    prune: sql(
      `DELETE FROM "_engine_work" WHERE work IN
         (SELECT work FROM "_engine_work" WHERE ended < ? AND state <> 'unclosed' ORDER BY ended LIMIT ?)`,
    ),
  };
}
