import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { recordSchedules } from "@portico/adapters/schedules/records";
import { defineWorkflowNode } from "@portico/core";
import * as v from "valibot";
import { startWorkflowService } from "../../harness/workflow-app.ts";

// Runs in its own process, which the test kills: a workflow service with schedules. Its node must not be repeated, and records each execution.
const [dataDir = "", happened = ""] = process.argv.slice(2);
const file = openSync(happened, "a");
const markNode = defineWorkflowNode({
  name: "workflow-nodes/mark",
  needs: {},
  rules: () => ({ type: "mark", input: v.strictObject({}), repeatable: false }),
  open: () => ({
    async run({ step: { runId } }) {
      writeSync(file, `${runId}\n`);
      await sleep(Math.random() * 200);
      return null;
    },
  }),
});
const { url } = await startWorkflowService({
  dataDir,
  // A process that stands by takes the work over soon.
  engine: { leaseMs: 3000 },
  adapters: [markNode(), recordSchedules({ everyMs: 50 })],
});
process.send?.(url);
