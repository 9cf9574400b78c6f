import type { PoolClient } from "../../records/postgres/connections.ts";
import type { Loaded, Part } from "../../records/postgres/group-writer.ts";
import { prepared } from "../../records/postgres/prepared.ts";
import { queueOf, type WorkChange } from "./work-change.ts";
import { toWorkNote, toWorkRow, WORK_COLUMNS, type WorkNote, type WorkRow } from "./work-row.ts";
import { queueName, WorkSheet } from "./work-sheet.ts";

/** Names of all columns of a work, for SQL. */
export const COLUMNS: string = WORK_COLUMNS.map(([name]) => name).join(", ");

/** The works of the journal, as rows that a group changes together with records. */
export function createWorkRows(schema: string): Part<WorkChange> {
  const sql = statements(schema);
  return {
    ready: () => undefined,
    lockNames(change) {
      const queue = queueOf(change);
      const own = `_engine/${change.id}`;
      return queue ? [own, `_engine-key/${queueName(queue.kind, queue.key)}`] : [own];
    },
    size(change) {
      if (change.type === "accept") return change.work.input.length;
      return change.type === "note" ? (change.note.value?.length ?? 0) : 0;
    },
    async load(client, changes): Promise<Loaded<WorkChange>> {
      const rows = new Map<string, WorkRow>();
      const load = async (text: string, values: readonly unknown[]): Promise<readonly WorkRow[]> => {
        const found = (await prepared<Record<keyof WorkRow, unknown>>(client, text, values)).map(toWorkRow);
        for (const row of found) rows.set(row.id, row);
        return found;
      };
      await load(sql.byId, [[...new Set(changes.map(({ id }) => id))]]);
      const queues = await loadQueues(changes, (values) => load(sql.ofQueues, values));
      const beginning = changes.flatMap((change) => (change.type === "begin" ? (rows.get(change.id)?.work ?? []) : []));
      const parking = changes.flatMap((change) => (change.type === "park" ? (rows.get(change.id)?.work ?? []) : []));
      const sheet = new WorkSheet({
        rows: [...rows.values()],
        queues,
        living: await loadLiving(client, sql.living, changes),
        numbers: await reserve(client, sql.reserve, changes),
        notes: beginning.length + parking.length > 0 ? await loadNotes(client, sql.notes, beginning, parking) : [],
      });
      return {
        apply(change, undo) {
          sheet.apply(change, undo);
          return 0;
        },
        write: () => writeSheet(client, sql, sheet),
      };
    },
  };
}

type Statements = ReturnType<typeof statements>;

function statements(schema: string) {
  const [works, notes] = [`"${schema}"."_engine_work"`, `"${schema}"."_engine_notes"`];
  const values = WORK_COLUMNS.map(([, type], at) => `$${at + 1}::${type}[]`).join(", ");
  const changing = WORK_COLUMNS.map(([name]) => name).filter((name) => !["work", "id", "kind", "key", "accepted"].includes(name));
  return {
    byId: `SELECT ${COLUMNS} FROM ${works} WHERE id = ANY($1)`,
    ofQueues: `
      SELECT found.* FROM unnest($1::text[], $2::text[], $3::int[]) AS queue (kind, key, most), LATERAL (
        SELECT ${COLUMNS} FROM ${works} AS one WHERE one.kind = queue.kind AND one.key = queue.key AND ended IS NULL
        ORDER BY work LIMIT queue.most
      ) AS found`,
    // A lease that a commit relies on stays until the commit: a process that takes it away waits, and then finds what was committed.
    living: `SELECT lease FROM "${schema}"."_engine_processes" WHERE lease = ANY($1) FOR KEY SHARE`,
    reserve: `SELECT nextval('"${schema}"."_engine_number"') AS number FROM generate_series(1, $1)`,
    notes: `
      SELECT work, kind, name, number, state, value FROM ${notes} WHERE work = ANY($1) OR (work = ANY($2) AND kind = 'signal')
      ORDER BY work, kind, name, number`,
    insert: `INSERT INTO ${works} (${COLUMNS}) SELECT * FROM unnest(${values})`,
    update: `
      UPDATE ${works} AS old SET ${changing.map((name) => `${name} = new.${name}`).join(", ")},
        queued = CASE WHEN new.generation > old.generation THEN now() ELSE old.queued END
      FROM unnest(${values}) AS new (${COLUMNS}) WHERE old.work = new.work`,
    keep: `
      INSERT INTO ${notes} (work, kind, name, number, state, value)
      SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[])
      ON CONFLICT (work, kind, name, number) DO UPDATE SET state = excluded.state, value = excluded.value`,
    forget: `DELETE FROM ${notes} WHERE work = ANY($1)`,
  };
}

/** The first works of each key that have not ended: as many as its limit and the changes can concern. */
async function loadQueues(
  changes: readonly WorkChange[],
  load: (values: readonly unknown[]) => Promise<readonly WorkRow[]>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const wanted = new Map<string, { readonly kind: string; readonly key: string; most: number }>();
  for (const change of changes) {
    const queue = queueOf(change);
    if (!queue) continue;
    const { kind, key, keyLimit } = queue;
    const found = wanted.get(queueName(kind, key)) ?? { kind, key, most: 0 };
    wanted.set(queueName(kind, key), { ...found, most: Math.max(found.most, keyLimit) + 1 });
  }
  const queues = new Map<string, string[]>();
  if (wanted.size === 0) return queues;
  const all = [...wanted.values()];
  const rows = await load([all.map(({ kind }) => kind), all.map(({ key }) => key), all.map(({ most }) => most)]);
  for (const { kind, key, id } of rows) queues.set(queueName(kind, key), [...(queues.get(queueName(kind, key)) ?? []), id]);
  return queues;
}

async function loadLiving(client: PoolClient, text: string, changes: readonly WorkChange[]): Promise<ReadonlySet<number>> {
  const leases = changes.flatMap((change) => {
    if (change.type === "begin") return [change.lease];
    return change.type === "accept" && change.work.beginsAt !== undefined ? [change.work.beginsAt] : [];
  });
  if (leases.length === 0) return new Set();
  const rows = await prepared<{ lease: string }>(client, text, [[...new Set(leases)]]);
  return new Set(rows.map(({ lease }) => Number(lease)));
}

async function reserve(client: PoolClient, text: string, changes: readonly WorkChange[]): Promise<readonly number[]> {
  const count = changes.filter(({ type }) => type === "accept" || type === "signal").length;
  if (count === 0) return [];
  return (await prepared<{ number: string }>(client, text, [count])).map(({ number }) => Number(number));
}

async function loadNotes(client: PoolClient, text: string, beginning: readonly number[], parking: readonly number[]) {
  return (await prepared<Record<keyof WorkNote, unknown>>(client, text, [beginning, parking])).map(toWorkNote);
}

async function writeSheet(client: PoolClient, sql: Statements, { made, changed, notes, forgotten }: WorkSheet): Promise<void> {
  const columns = (rows: readonly WorkRow[]) => WORK_COLUMNS.map(([name]) => rows.map((row) => row[name]));
  if (made.length > 0) await prepared(client, sql.insert, columns(made));
  if (changed.length > 0) await prepared(client, sql.update, columns(changed));
  if (notes.length > 0) {
    const values = [
      notes.map(({ work }) => work),
      notes.map(({ kind }) => kind),
      notes.map(({ name }) => name),
      notes.map(({ number }) => number),
      notes.map(({ state }) => state),
      notes.map(({ value }) => value ?? null),
    ];
    await prepared(client, sql.keep, values);
  }
  if (forgotten.length > 0) await prepared(client, sql.forget, [forgotten]);
}
