import { defineAdapter, ports } from "@portico/core";
import { type CheckedWrite, createRecords, type RecordsBackend, type Row } from "./create-records.ts";
import { readField } from "./field-path.ts";
import { orderValue, type QueryPlan } from "./query-plan.ts";
import { compareOrder } from "./record-order.ts";

/**
 * Records in this process's memory, lost when it closes: for tests and for trying things out. A query reads its whole collection.
 */
export const memoryRecords = defineAdapter({
  name: "records/memory",
  port: ports.records,
  needs: {},
  open(_given, _options, scope) {
    const { records, close } = createMemoryRecords();
    scope.onClose(close);
    return records;
  },
});

/** The same records without an app. */
export function createMemoryRecords(): { readonly records: ports.Records; close(): void } {
  const backend = createMemoryBackend();
  return { records: createRecords(backend), close: backend.close };
}

/** A row and its parsed value, which is only read: callers get their own copy, parsed from the text. */
interface MemoryRow extends Row {
  readonly value: object;
}

function createMemoryBackend(): RecordsBackend & { close(): void } {
  const collections = new Map<string, Map<string, MemoryRow>>();
  let lastVersion = 0;
  let closed = false;

  const rowsOf = (collection: string): Map<string, MemoryRow> => {
    if (closed) throw new ports.RecordsUnavailable("The records store is closed");
    const rows = collections.get(collection) ?? new Map<string, MemoryRow>();
    collections.set(collection, rows);
    return rows;
  };

  const apply = (write: CheckedWrite, undo: (() => void)[]): number => {
    const rows = rowsOf(write.collection);
    const current = rows.get(write.id);
    if (write.expected !== undefined && write.expected !== (current?.version ?? "absent")) {
      throw new ports.RecordConflict(write.collection, write.id);
    }
    if (write.text === undefined && !current) return 0;
    undo.push(() => (current ? rows.set(write.id, current) : rows.delete(write.id)));
    const version = ++lastVersion;
    if (write.text === undefined) rows.delete(write.id);
    else rows.set(write.id, { id: write.id, version, text: write.text, value: JSON.parse(write.text) as object });
    return version;
  };

  return {
    open: (shape) => void rowsOf(shape.name),
    get: (collection, id) => rowsOf(collection).get(id),
    page: (collection, plan) => pageOf([...rowsOf(collection).values()], plan),
    async commit(writes) {
      const undo: (() => void)[] = [];
      try {
        return writes.map((write) => apply(write, undo));
      } catch (error) {
        for (const step of undo.reverse()) step();
        throw error;
      }
    },
    close() {
      closed = true;
      collections.clear();
    },
  };
}

function pageOf(rows: readonly MemoryRow[], plan: QueryPlan): readonly Row[] {
  const { by, after } = plan;
  const keyed = rows
    .filter((row) => plan.where.every(([field, value]) => readField(row.value, field) === value))
    .map((row) => ({ row, value: orderValue(row.value, by), id: row.id }));
  return keyed
    .filter((key) => after === undefined || compareOrder(key, after, plan) > 0)
    .sort((a, b) => compareOrder(a, b, plan))
    .slice(0, plan.limit + 1)
    .map((key) => key.row);
}
