import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryRecords } from "@portico/adapters/records/memory";
import { postgresRecords } from "@portico/cluster/records/postgres";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import type { Adapter, ports } from "@portico/core";
import { openAdapter } from "../conformance/open-adapter.ts";
import { postgresDatabase } from "../harness/postgres.ts";

// Measures the operations per second of each store on this machine's disk: `node test/bench/records.bench.ts`, about 10 seconds, and 20
// more if a PostgreSQL server is reachable.

const SLICE_MS = 1500;
const FILL = 100_000;
const WRITERS = 50;

interface Run {
  owner: string;
  startedAt: string;
  title: string;
  usage: { input: number; output: number };
}

const run = (at: number): Run => ({
  owner: `user-${at % 10}`,
  startedAt: new Date(1_900_000_000_000 + at * 1000).toISOString(),
  title: `Run number ${at} of the benchmark, with a title of usual length`,
  usage: { input: at, output: at * 2 },
});

/** Calls per second of `once`, for about a slice of time. */
async function perSecond(once: (at: number) => Promise<unknown>): Promise<number> {
  const start = performance.now();
  let count = 0;
  while (performance.now() - start < SLICE_MS) await once(count++);
  return (count * 1000) / (performance.now() - start);
}

async function measure(adapter: Adapter<typeof ports.records>, fill: number): Promise<Record<string, string>> {
  const { port, close } = await openAdapter(adapter);
  const runs = port.collection<Run>({ name: "runs", indexes: { newest: ["owner", "startedAt"], all: ["startedAt"] } });
  const single = await perSecond((at) => runs.put(`single-${at}`, run(at)));
  let next = 0;
  const grouped =
    WRITERS *
    (await perSecond(() => Promise.all(Array.from({ length: WRITERS }, () => runs.put(`grouped-${next}`, run(next++))))));
  for (let at = 0; at < fill; at += 1000) {
    await port.batch(Array.from({ length: 1000 }, (_, step) => runs.write.put(`run-${at + step}`, run(at + step))));
  }
  const gets = await perSecond((at) => runs.get(`run-${(at * 7919) % fill}`));
  const order = { by: "startedAt", direction: "descending" } as const;
  const newest = await perSecond(() => runs.query({ order, limit: 50 }));
  const mine = await perSecond((at) => runs.query({ where: { owner: `user-${at % 10}` }, order, limit: 50 }));
  await close();
  const show = (value: number): string => Math.round(value).toLocaleString("en");
  return {
    "awaited puts/s": show(single),
    [`rows/s, ${WRITERS} writers`]: show(grouped),
    "gets/s": show(gets),
    "µs per get": (1e6 / gets).toFixed(1),
    [`newest 50 of ${show(fill)}, queries/s`]: show(newest),
    "newest 50 of one owner, queries/s": show(mine),
  };
}

/** On this machine's own server, or the one that the tests use. */
async function measurePostgres(): Promise<Record<string, Record<string, string>>> {
  const database = await postgresDatabase();
  if (!database) return {};
  try {
    return { "records/postgres": await measure(postgresRecords({ url: database.url }), FILL) };
  } finally {
    await database.drop();
  }
}

const folder = mkdtempSync(join(tmpdir(), "portico-bench-"));
try {
  const sqlite = await measure(sqliteRecords({ path: join(folder, "records.db") }), FILL);
  console.table({ "records/sqlite": sqlite, ...(await measurePostgres()) });
  const { port, close } = await openAdapter(memoryRecords());
  const runs = port.collection<Run>({ name: "runs" });
  console.table({ "records/memory": { "puts/s": Math.round(await perSecond((at) => runs.put(`run-${at % 1000}`, run(at)))) } });
  await close();
} finally {
  rmSync(folder, { recursive: true });
}
