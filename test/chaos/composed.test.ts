import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFailed } from "vitest";
import { hasNginx } from "../harness/nginx.ts";
import { fileLoad } from "./cluster/files.ts";
import { REST_MS, runLoads, verifyLoads } from "./cluster/load.ts";
import { queryLoad } from "./cluster/queries.ts";
import { streamLoad } from "./cluster/streams.ts";
import { webhookLoad } from "./cluster/webhooks.ts";
import { workflowLoad } from "./cluster/workflows.ts";
import { type ComposedStage, startComposedStage } from "./composed/stage.ts";

const isLong = process.env.PORTICO_LONG === "1";
const SECOND_MS = 1000;
const PLAN = isLong ? { kills: 60, everyMs: 10 * SECOND_MS } : { kills: 3, everyMs: 3 * SECOND_MS };

const isPossible = hasNginx();
if (!isPossible) console.warn("The chaos of a service behind nginx is skipped: it needs nginx and openssl");

describe.skipIf(!isPossible)("a service behind the nginx of deploy/container that is killed at random", () => {
  it(
    "loses nothing that it accepted, does nothing twice that may not be repeated, and tells every client the truth",
    async () => {
      await using stage = await startComposedStage();
      onTestFailed(() => keepLog(stage));
      const loads = [
        // These are not stock clients: after a restart, a client must look up turns of which it has received no event.
        queryLoad(stage),
        await webhookLoad(stage),
        await workflowLoad(stage),
        fileLoad(stage),
        await streamLoad(stage),
      ];
      await runLoads(loads, () => storm(stage));

      await verifyLoads(loads, (counts) => {
        if (isLong) console.warn(JSON.stringify({ kills: PLAN.kills, ...counts, effects: stage.effects.counts }, null, 2));
      });
      expect.soft(stage.effects.twice(), "effects that took place twice").toEqual([]);
    },
    PLAN.kills * PLAN.everyMs + 5 * REST_MS,
  );
});

/** Kills the service repeatedly, each time at another moment of its life. */
async function storm(stage: ComposedStage): Promise<void> {
  for (let kill = 0; kill < PLAN.kills; kill++) {
    await sleep(PLAN.everyMs * (0.5 + Math.random() / 2));
    await stage.killService();
  }
  await sleep(PLAN.everyMs);
}

/** What the service logged outlives a test that failed. */
function keepLog(stage: ComposedStage): void {
  const folder = mkdtempSync(join(tmpdir(), "portico-chaos-"));
  writeFileSync(join(folder, "service.log"), stage.log());
  console.warn(`The log of the service is in ${folder}`);
}
