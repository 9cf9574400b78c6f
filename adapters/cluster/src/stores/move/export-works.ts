import type { DatabaseSync } from "node:sqlite";
import type { ImportedWork } from "../../engine/cluster/import-works.ts";
import type { WorkNote, WorkRow } from "../../engine/cluster/work-row.ts";
import { makeJournalTables } from "@portico/adapters/stores/sqlite-parts";

type Row = Pick<
  WorkRow,
  "work" | "id" | "kind" | "key" | "state" | "attempt" | "accepted" | "ended" | "output" | "error" | "reason" | "due" | "awaited"
>;

/**
 * All works of a journal that no process has open, as a journal of many processes has them. Work that was executing is lost work
 * there: it is resumed or closed. Empty for a store without a journal.
 */
export function* exportWorks(database: DatabaseSync): Generator<ImportedWork> {
  if (!database.prepare("SELECT 1 FROM sqlite_schema WHERE name = '_engine_work'").get()) return;
  makeJournalTables(database);
  const rows = database.prepare(
    `SELECT work, id, kind, key, state, attempt, accepted, ended, output, error, reason, due, awaited
     FROM "_engine_work" ORDER BY work`,
  );
  const notes = database.prepare(
    `SELECT kind, name, number, state, value FROM "_engine_notes" WHERE work = ? ORDER BY kind, name, number`,
  );
  for (const row of rows.iterate() as Iterable<unknown> as Iterable<Row>) {
    const found = notes.all(row.work) as unknown as readonly (Omit<WorkNote, "work" | "value"> & { value: string | null })[];
    yield { row: toClusterRow(row), notes: found.map((note) => ({ ...note, value: note.value ?? undefined })) };
  }
}

function toClusterRow({
  work,
  id,
  kind,
  key,
  state,
  attempt,
  accepted,
  ended,
  output,
  error,
  reason,
  due,
  awaited,
}: Row): WorkRow {
  // Resumed work that its process had not begun again was executing before. Work that continues after a wait was not.
  const wasExecuting = state === "executing" || (state === "lined" && attempt > 0 && awaited === null);
  const isLined = wasExecuting || state === "lined";
  return {
    ...{ work, id, kind, key },
    state: isLined ? "lined" : state,
    generation: isLined ? 1 : 0,
    fence: attempt,
    ...{ attempt, accepted, ended, output, error, reason, due, awaited },
    owner: null,
    lost: wasExecuting,
  };
}
