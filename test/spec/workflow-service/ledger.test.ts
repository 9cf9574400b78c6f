import { memoryLog } from "@portico/adapters/log/memory";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memoryBus } from "@portico/adapters/bus/memory";
import { systemClock } from "@portico/adapters/clock/system";
import { createApp, ports } from "@portico/core";
import { Ledger, readEntries } from "../../../plugins/src/workflow-service/runs/ledger.ts";
import type { LedgerEntry } from "../../../plugins/src/workflow-service/runs/ledger-entry.ts";
import { LiveRuns } from "../../../plugins/src/workflow-service/runs/live-runs.ts";
import { RunHints } from "../../../plugins/src/workflow-service/runs/run-hints.ts";
import { expect, it, onTestFinished } from "vitest";
import { openAdapter } from "../../conformance/open-adapter.ts";

it("a run's end is written after any number of events at once: more than one log entry can hold is divided", async () => {
  const { port: log, close } = await openAdapter(memoryLog(undefined), [memoryRecords()]);
  onTestFinished(close);
  const ledger = new Ledger(log, "wrun_1");
  ledger.begin();
  const text = "x".repeat(4_000_000);
  for (let at = 0; at < 5; at++)
    ledger.add({ kind: "end", nodeId: `n${at}`, type: "transform", status: "completed", outputs: text, attempts: 1 });
  await ledger.end([], text);
  expect(await log.count("workflow-run:wrun_1")).toBeGreaterThan(1);
  const again = new Ledger(log, "wrun_1");
  await again.recall();
  const nodes: string[] = [];
  for await (const { entry } of again.read({})) nodes.push(entry.nodeId);
  expect(nodes).toEqual(["n0", "n1", "n2", "n3", "n4"]);
});

it("an execution that lost its run, and ends late, drops nothing that the next execution in the same process tells", async () => {
  const { log, records, hints } = await openStores();
  let isAway = false;
  const appendAll: ports.EventLog["appendAll"] = (...given) =>
    isAway ? Promise.reject(new ports.LogUnavailable("away")) : log.appendAll(...given);
  const live = new LiveRuns({ ...log, appendAll }, hints);
  const marks = records.collection({ name: "marks" });
  await marks.put("lost", {}, "absent");

  // The condition of the first execution does not hold any more.
  const first = live.begin("wrun_1", marks.write.put("lost", {}, "absent"));
  await first.ledger.recall();
  first.ledger.add(ended("a"));
  const second = live.begin("wrun_1", marks.write.put("held", {}));
  await second.ledger.recall();
  second.ledger.add(ended("a"));
  second.ledger.add(ended("b"));
  isAway = true;
  await live.end(first, { isOver: false });
  isAway = false;
  expect(live.find("wrun_1")).toBe(second);
  expect(second.isExecuting).toBe(true);
  second.ledger.add(ended("c"));
  await second.ledger.end([], undefined);
  expect(await nodesOf(log)).toEqual(["a", "b", "c"]);
  await live.end(second, { isOver: true });
  expect(live.find("wrun_1")).toBeUndefined();
});

it("a reader of stored entries gets each one once, at its final position, if unstored entries are lost and written again in another order", async () => {
  const { log } = await openStores();
  const ledger = new Ledger(log, "wrun_1");
  await ledger.recall();
  ledger.add(ended("a"));
  await ledger.write();
  const read: string[] = [];
  const reading = (async () => {
    for await (const { position, entry } of ledger.read({ follow: true, isStored: true }))
      read.push(`${position} ${entry.nodeId}`);
  })();
  ledger.add(ended("b"));
  ledger.add(ended("c"));
  const now: string[] = [];
  for await (const { entry } of ledger.read({})) now.push(entry.nodeId);
  expect(now).toEqual(["a", "b", "c"]);
  // Another process continues the run.
  ledger.give();
  const other = new Ledger(log, "wrun_1");
  await other.recall();
  for (const nodeId of ["d", "c"]) other.add(ended(nodeId));
  await other.write();
  await ledger.refresh();
  await expect.poll(() => read).toEqual(["0 a", "1 d", "2 c"]);
  for (const nodeId of ["e", "b", "f"]) other.add(ended(nodeId));
  await other.end([], undefined);
  await ledger.refresh();
  ledger.close();
  await reading;
  expect(read).toEqual(["0 a", "1 d", "2 c", "3 e", "4 b", "5 f"]);
});

it("a run that ends cancels the nodes that an earlier execution started, and that the last one did not reach", async () => {
  const { log } = await openStores();
  const at = new Date(1000).toISOString();
  const started = (nodeId: string): LedgerEntry => ({ kind: "start", nodeId, type: "http", at });
  const killed = new Ledger(log, "wrun_1");
  await killed.recall();
  for (const entry of [started("each"), started("each[0].get"), ended("each[0].get"), started("each[1].get")]) killed.add(entry);
  await killed.write();

  const ledger = new Ledger(log, "wrun_1");
  await ledger.recall();
  ledger.add({ ...ended("each"), status: "cancelled" } as LedgerEntry);
  ledger.cancelBegun(3500);
  await ledger.end([], undefined);
  const entries: LedgerEntry[] = [];
  for await (const entry of readEntries(log, "wrun_1", new AbortController().signal)) entries.push(entry);
  expect(entries.slice(4)).toEqual([
    expect.objectContaining({ kind: "end", nodeId: "each", status: "cancelled" }),
    {
      ...{ kind: "end", nodeId: "each[1].get", type: "http", status: "cancelled", attempts: 1 },
      ...{ startedAt: at, completedAt: new Date(3500).toISOString(), durationMs: 2500 },
    },
  ]);
});

async function openStores() {
  const adapters = [memoryRecords(), memoryLog(undefined), memoryBus({}), systemClock()];
  const app = await createApp({ name: "ledger", adapters });
  onTestFinished(() => app.close());
  const hints = new RunHints(app.port(ports.bus), app.port(ports.clock));
  return { log: app.port(ports.log), records: app.port(ports.records), hints };
}

const ended = (nodeId: string): LedgerEntry => ({ kind: "end", nodeId, type: "transform", status: "completed", attempts: 1 });

async function nodesOf(log: ports.EventLog): Promise<string[]> {
  const nodes: string[] = [];
  for await (const { nodeId } of readEntries(log, "wrun_1", new AbortController().signal)) nodes.push(nodeId);
  return nodes;
}
