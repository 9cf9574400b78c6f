import { memoryLog } from "@portico/adapters/log/memory";
import { memoryRecords } from "@portico/adapters/records/memory";
import { Ledger } from "../../../plugins/src/workflow-service/runs/ledger.ts";
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
  for await (const { nodeId } of again.read({ follow: false })) nodes.push(nodeId);
  expect(nodes).toEqual(["n0", "n1", "n2", "n3", "n4"]);
});
