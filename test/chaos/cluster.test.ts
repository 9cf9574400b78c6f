import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFailed } from "vitest";
import { hasPostgresServer } from "../harness/postgres-server.ts";
import { hasRedisServer } from "../harness/redis.ts";
import { type Fault, Faults } from "./cluster/faults.ts";
import { fileLoad } from "./cluster/files.ts";
import { REST_MS, runLoads, verifyLoads } from "./cluster/load.ts";
import { queryLoad } from "./cluster/queries.ts";
import { LEASE_MS, type Stage, startStage } from "./cluster/stage.ts";
import { stockClientLoad } from "./cluster/stock-client.ts";
import { streamLoad } from "./cluster/streams.ts";
import { webhookLoad } from "./cluster/webhooks.ts";
import { workflowLoad } from "./cluster/workflows.ts";

const isLong = process.env.PORTICO_LONG === "1";
const SECOND_MS = 1000;
/** Faults follow each other: faults of processes, and sometimes one of a server in between. */
const PLAN = isLong
  ? longPlan()
  : { everyMs: 5 * SECOND_MS, faults: ["kill", "wipe Redis", "freeze", "crash PostgreSQL"] as const };

const hasServers = hasPostgresServer() && hasRedisServer();
if (!hasServers) console.warn("The chaos of a cluster is skipped: it needs the programs of PostgreSQL and Redis");

describe.skipIf(!hasServers)("a cluster whose processes and servers fail", () => {
  it(
    `${isLong ? "ten minutes of" : PLAN.faults.length} faults under queries, webhooks, workflows, uploads, media reads and proxy streams: nothing accepted is lost, nothing that may not be repeated is done twice, and every client is told the truth`,
    async () => {
      await using stage = await startStage();
      onTestFailed(() => keepLogs(stage));
      const faults = new Faults(stage);
      const loads = [
        queryLoad(stage),
        stockClientLoad(stage),
        await webhookLoad(stage),
        await workflowLoad(stage),
        fileLoad(stage),
        await streamLoad(stage),
      ];
      await runLoads(loads, () => storm(faults));

      await expect.poll(() => openWorks(stage), { timeout: REST_MS, interval: SECOND_MS }).toEqual([]);
      await verifyLoads(loads, (counts) => {
        if (isLong) console.warn(JSON.stringify({ faults: faults.counts, ...counts, effects: stage.effects.counts }, null, 2));
      });
      expect.soft(stage.effects.twice(), "effects that took place twice").toEqual([]);
      await allIsWell(stage, faults);
    },
    PLAN.faults.length * PLAN.everyMs + 5 * REST_MS,
  );
});

/** Causes faults one after another, as many as fit into the time on a busy machine. */
async function storm(faults: Faults): Promise<void> {
  const over = Date.now() + PLAN.faults.length * PLAN.everyMs;
  for (const fault of PLAN.faults) {
    if (isLong && Date.now() > over) return;
    const pause = sleep(PLAN.everyMs);
    await faults.cause(fault);
    await pause;
  }
}

/** Ten minutes: a fault of a process every ten seconds, and a fault of a server after every third one. */
function longPlan() {
  const processFaults = Array.from({ length: 60 }, (_, at): Fault => (at % 2 === 0 ? "kill" : "freeze"));
  const servers: readonly Fault[] = ["wipe Redis", "crash PostgreSQL", "kill Redis", "restart PostgreSQL"];
  const faults = processFaults.flatMap((fault, at) =>
    at % 3 === 2 ? [fault, servers[Math.floor(at / 3) % servers.length]!] : [fault],
  );
  return { everyMs: (600 * SECOND_MS) / faults.length, faults };
}

/** Accepted work that has not ended, and what is stored for work that has. */
async function openWorks({ cluster }: Stage): Promise<readonly unknown[]> {
  const { database } = cluster.place;
  return [
    ...(await database.query(`SELECT id, state FROM portico."_engine_work" WHERE ended IS NULL`)),
    ...(await database.query(`SELECT n.work, n.kind FROM portico."_engine_notes" n LEFT JOIN portico."_engine_work" w USING (work)
      WHERE w.ended IS NOT NULL OR w.work IS NULL`)),
  ];
}

/** What the processes logged outlives a test that failed. */
function keepLogs({ cluster }: Stage): void {
  const folder = mkdtempSync(join(tmpdir(), "portico-chaos-"));
  for (const { pid, stderr } of cluster.processes) writeFileSync(join(folder, `${pid}.log`), stderr());
  console.warn(`The logs of the processes are in ${folder}`);
}

async function allIsWell({ cluster }: Stage, { living }: Faults): Promise<void> {
  expect(living).toHaveLength(3);
  for (const each of living) {
    const readiness = async () => (await fetch(`${each.url("agent")}/readyz`)).status;
    await expect.poll(readiness).toBe(200);
  }
  const leases = () => cluster.place.database.query(`SELECT lease FROM portico."_engine_processes" WHERE until > now()`);
  await expect.poll(async () => (await leases()).length, { timeout: 20 * LEASE_MS }).toBe(3);
  // Each process has one folder, which contains its lock.
  const entries = readdirSync(join(cluster.place.folder, "blobs", ".tmp"), { recursive: true, withFileTypes: true });
  expect(entries.filter((entry) => entry.isFile() && entry.name !== "lock").map(({ name }) => name)).toEqual([]);
  expect(entries.filter((entry) => entry.isDirectory())).toHaveLength(3);
}
