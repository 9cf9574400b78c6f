import type { PostgresStore } from "../../records/postgres/store.ts";
import { prepared } from "../../records/postgres/prepared.ts";
import { toWorkNote, toWorkRow, WORK_COLUMNS, type WorkNote, type WorkRow } from "./work-row.ts";
import { COLUMNS } from "./work-rows.ts";

/** A work with everything that its journal has of it. */
export interface ImportedWork {
  readonly row: WorkRow;
  /** In the order of their kinds, names and numbers, by UTF-8 bytes. */
  readonly notes: readonly Omit<WorkNote, "work">[];
}

const PAGE = 200;

/**
 * Insert works of another journal with their numbers, which later works exceed. Works that the journal has are left as they are.
 * No process may use the journal. Throws RecordsUnavailable.
 */
export async function importWorks(store: PostgresStore, works: readonly ImportedWork[]): Promise<void> {
  const { schema } = store;
  const values = WORK_COLUMNS.map(([, type], at) => `$${at + 1}::${type}[]`).join(", ");
  const notes = works.flatMap((each) => each.notes.map((note) => ({ work: each.row.work, ...note })));
  const newest = Math.max(1, ...works.map(({ row }) => row.work), ...notes.map(({ number }) => number));
  await store.make(async (client) => {
    await client.query(
      `INSERT INTO "${schema}"."_engine_work" (${COLUMNS}) SELECT * FROM unnest(${values}) ON CONFLICT DO NOTHING`,
      WORK_COLUMNS.map(([name]) => works.map(({ row }) => row[name])),
    );
    await client.query(
      `INSERT INTO "${schema}"."_engine_notes" (work, kind, name, number, state, value)
       SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[]) ON CONFLICT DO NOTHING`,
      [
        notes.map(({ work }) => work),
        notes.map(({ kind }) => kind),
        notes.map(({ name }) => name),
        notes.map(({ number }) => number),
        notes.map(({ state }) => state),
        notes.map(({ value }) => value ?? null),
      ],
    );
    const sequence = `"${schema}"."_engine_number"`;
    await client.query(`SELECT setval('${sequence}', greatest($1, (SELECT last_value FROM ${sequence})))`, [newest]);
  });
}

/** All works, in the order of their numbers. */
export async function* readWorks({ schema, read }: PostgresStore): AsyncGenerator<ImportedWork> {
  let after = 0;
  for (;;) {
    const rows = await read((client) =>
      prepared<Record<keyof WorkRow, unknown>>(
        client,
        `SELECT ${COLUMNS} FROM "${schema}"."_engine_work" WHERE work > $1 ORDER BY work LIMIT ${PAGE}`,
        [after],
      ),
    );
    const notes = await read((client) =>
      prepared<Record<keyof WorkNote, unknown>>(
        client,
        `SELECT work, kind, name, number, state, value FROM "${schema}"."_engine_notes" WHERE work = ANY($1)
         ORDER BY work, kind, name, number`,
        [rows.map(({ work }) => work)],
      ),
    );
    const byWork = Map.groupBy(notes.map(toWorkNote), ({ work }) => work);
    for (const row of rows.map(toWorkRow)) {
      yield { row, notes: (byWork.get(row.work) ?? []).map(toNote) };
    }
    const last = rows.at(-1);
    if (!last) return;
    after = Number(last.work);
  }
}

function toNote({ kind, name, number, state, value }: WorkNote): ImportedWork["notes"][number] {
  return { kind, name, number, state, value };
}
