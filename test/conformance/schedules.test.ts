import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { embeddedEngine } from "@portico/adapters/engine/embedded";
import { randomIds } from "@portico/adapters/ids/random";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { recordSchedules } from "@portico/adapters/schedules/records";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { join } from "node:path";
import { temporaryFolder } from "../harness/portico-process.ts";
import { schedulesConformance } from "./schedules.ts";

schedulesConformance("records, in SQLite", async () => {
  const folder = temporaryFolder();
  const manual = createManualClock();
  let aheadMs = 0;
  const clock = { ...manual, now: () => manual.now() + aheadMs };
  return {
    process: () => [
      sqliteRecords({ path: join(folder.path, "records.sqlite") }),
      embeddedEngine({}),
      manualClock({ clock }),
      randomIds(),
      memoryTelemetry({}),
      recordSchedules({}),
    ],
    // A chore runs after each second: one after another, as in life.
    async pass(ms) {
      for (let left = ms; left > 0; left -= 1000) await clock.advance(Math.min(left, 1000));
    },
    now: () => clock.now(),
    setClock: (ms) => void (aheadMs += ms),
    close: async () => folder.remove(),
  };
});
