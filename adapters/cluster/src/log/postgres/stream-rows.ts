import type { PoolClient } from "../../records/postgres/connections.ts";
import type { Loaded, Part } from "../../records/postgres/group-writer.ts";
import { prepared } from "../../records/postgres/prepared.ts";

/** An entry to append. Without a text: a stream to remove. */
export interface StreamChange {
  readonly stream: string;
  readonly text: string | undefined;
}

/** The state of a stream: its number, and the sequence of its newest entry. */
interface Head {
  readonly number: number;
  readonly newest: number;
}

/**
 * The streams of a log, as rows that a group changes. The result of an append is its sequence number; the result of a removal is
 * 1, or 0 for a missing stream.
 */
export function createStreamRows(schema: string): Part<StreamChange> {
  return {
    ready: () => undefined,
    lockNames: ({ stream }) => [`_log/${stream}`],
    size: ({ text }) => text?.length ?? 0,
    async load(client, changes) {
      const streams = [...new Set(changes.map(({ stream }) => stream))];
      const rows = await prepared<{ stream: string; number: string; newest: string }>(
        client,
        `SELECT stream, number, newest FROM "${schema}"."_log_streams" WHERE stream = ANY($1)`,
        [streams],
      );
      const heads = new Map(rows.map((row) => [row.stream, { number: Number(row.number), newest: Number(row.newest) }]));
      // A missing stream may be created, and so may each removed stream.
      const removals = changes.filter(({ text }) => text === undefined).length;
      return createLoaded(client, schema, heads, await reserve(client, schema, streams.length - heads.size + removals));
    },
  };
}

function createLoaded(
  client: PoolClient,
  schema: string,
  heads: Map<string, Head>,
  numbers: readonly number[],
): Loaded<StreamChange> {
  const found = new Map(heads);
  const entries: (Head & { readonly text: string })[] = [];
  const removed: number[] = [];
  let used = 0;

  const append = (stream: string, text: string, undo: (() => void)[]): number => {
    const head = heads.get(stream);
    const { number, newest } = head ?? { number: numbers[used++]!, newest: 0 };
    const next = { number, newest: newest + 1 };
    heads.set(stream, next);
    entries.push({ ...next, text });
    undo.push(() => {
      entries.pop();
      if (head) heads.set(stream, head);
      else heads.delete(stream);
      if (!head) used--;
    });
    return next.newest;
  };

  const remove = (stream: string, undo: (() => void)[]): number => {
    const head = heads.get(stream);
    if (!head) return 0;
    heads.delete(stream);
    removed.push(head.number);
    undo.push(() => {
      removed.pop();
      heads.set(stream, head);
    });
    return 1;
  };

  return {
    apply: ({ stream, text }, undo) => (text === undefined ? remove(stream, undo) : append(stream, text, undo)),
    async write() {
      const gone = [...found.keys()].filter((stream) => !heads.has(stream));
      const moved = [...heads].filter(([stream, head]) => found.get(stream) !== head);
      if (gone.length > 0) await prepared(client, `DELETE FROM "${schema}"."_log_streams" WHERE stream = ANY($1)`, [gone]);
      if (removed.length > 0) {
        await prepared(client, `INSERT INTO "${schema}"."_log_removed" SELECT unnest($1::bigint[])`, [removed]);
      }
      if (moved.length > 0) {
        await prepared(
          client,
          `INSERT INTO "${schema}"."_log_streams" (stream, number, newest) SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[])
           ON CONFLICT (stream) DO UPDATE SET number = excluded.number, newest = excluded.newest`,
          [moved.map(([stream]) => stream), moved.map(([, { number }]) => number), moved.map(([, { newest }]) => newest)],
        );
      }
      if (entries.length > 0) {
        await prepared(
          client,
          `INSERT INTO "${schema}"."_log_entries" (number, sequence, entry)
           SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[])`,
          [entries.map(({ number }) => number), entries.map(({ newest }) => newest), entries.map(({ text }) => text)],
        );
      }
    },
  };
}

async function reserve(client: PoolClient, schema: string, count: number): Promise<readonly number[]> {
  if (count === 0) return [];
  const rows = await prepared<{ number: string }>(
    client,
    `SELECT nextval('"${schema}"."_log_number"') AS number FROM generate_series(1, $1)`,
    [count],
  );
  return rows.map(({ number }) => Number(number));
}
