import { setTimeout as sleep } from "node:timers/promises";
import { createManualClock, type ManualClock } from "@portico/adapters/clock/manual";
import { readTiming } from "@portico/adapters/schedules/planned-times";
import { recordSchedules } from "@portico/adapters/schedules/records";
import fc from "fast-check";
import { expect, it } from "vitest";
import { isClusterRun } from "../../harness/members.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { propertyRuns } from "../../harness/property-runs.ts";
import { startWorkflowService, type WorkflowService } from "../../harness/workflow-app.ts";

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;

/** A few hours before clocks change, and before a day without a change. No planned time is near. */
const beginnings = fc.constantFrom(
  ...["2026-03-28T19:07:00Z", "2026-10-24T19:07:00Z", "2026-03-07T23:07:00Z", "2026-10-31T23:07:00Z", "2026-06-01T12:07:00Z"],
);
const timings = fc.oneof(
  fc.record({
    cron: fc.constantFrom("30 2 * * *", "15 1,2,3 * * *", "*/20 2 * * *", "0 */6 * * *"),
    timeZone: fc.constantFrom("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"),
  }),
  fc.record({ every: fc.constantFrom("5h", "1d") }),
);
/** `ahead` also means a machine that slept. While the service is down, its clock may be set back, too. */
const steps = fc.array(
  fc.record({
    isDown: fc.boolean(),
    minutes: fc.oneof(
      fc.integer({ min: 1, max: 90 }),
      fc.integer({ min: 1, max: 2 * DAY_MINUTES }),
      fc.integer({ min: -DAY_MINUTES, max: -1 }),
    ),
  }),
  { minLength: 1, maxLength: 5 },
);

// The test's clock does not wait for the chores of three processes.
it.skipIf(isClusterRun)(
  "every planned time up to the latest time that the clock showed has one run, and no other time has one: over changes of clocks, daylight saving and restarts",
  async () => {
    await fc.assert(
      fc.asyncProperty(beginnings, timings, steps, async (startAt, timing, taken) => {
        const folder = temporaryFolder();
        const clock = createSetClock(startAt);
        const start = () =>
          startWorkflowService({
            ...{ clock, dataDir: folder.path, adapters: [recordSchedules({})] },
            definitions: {
              "report.json": {
                schedules: [
                  { name: "whole", ...timing, catchUp: 1000 },
                  { name: "newest", ...timing },
                ],
                nodes: { n: { type: "transform", with: { value: 1 } } },
              },
            },
          });
        let service = await start();
        try {
          const first = clock.now();
          let latest = first;
          const planned = () => {
            latest = Math.max(latest, clock.now());
            return plannedBetween(timing, first, latest);
          };
          // A schedule that was resumed has been seen. On a busy machine, a few looks do not reach both.
          for (const name of ["whole", "newest"]) {
            for (const action of ["pause", "resume"]) {
              const path = `/api/workflow/report/schedules/${name}/${action}`;
              await expect.poll(async () => (await service.call("POST", path, {})).status).toBe(200);
            }
          }
          await looks(clock);
          for (const { isDown, minutes } of taken) {
            if (isDown) await service.close();
            // A schedule begins anew before the time when it was first seen.
            clock.set(Math.max(minutes * MINUTE_MS, first + MINUTE_MS - clock.now()));
            if (isDown) service = await start();
            // Both, because the next step may set the clock back.
            await expect
              .poll(
                async () => {
                  await looks(clock);
                  return [(await startedBy(service, "whole")).length, (await startedBy(service, "newest")).at(-1)];
                },
                { timeout: 60_000 },
              )
              .toEqual([planned().length, planned().at(-1)]);
          }
          expect(await startedBy(service, "whole")).toEqual(planned());
          const newest = await startedBy(service, "newest");
          expect(newest).toEqual(planned().filter((time) => newest.includes(time)));
        } finally {
          await service.close();
          folder.remove();
        }
      }),
      { numRuns: propertyRuns(40) },
    );
  },
  600_000,
);

/** A manual clock that is set ahead and back without timers. */
function createSetClock(startAt: string): ManualClock & { set(ms: number): void } {
  const manual = createManualClock({ startAt });
  let aheadMs = 0;
  return { ...manual, now: () => manual.now() + aheadMs, set: (ms) => void (aheadMs += ms) };
}

/** Lets some looks at the schedules end. */
async function looks(clock: ManualClock): Promise<void> {
  for (let step = 0; step < 3; step++) {
    await clock.advance(1000);
    await sleep(2);
  }
}

function plannedBetween(
  timing: { readonly cron: string; readonly timeZone: string } | { readonly every: string },
  from: number,
  to: number,
): readonly number[] {
  const times = readTiming(
    "cron" in timing ? timing : { everyMs: timing.every === "5h" ? 300 * MINUTE_MS : DAY_MINUTES * MINUTE_MS },
  );
  const planned: number[] = [];
  for (let [next] = times.after(from, 1); next !== undefined && next <= to; [next] = times.after(next, 1)) planned.push(next);
  return planned;
}

/** The planned times of the runs of a schedule, oldest first. */
async function startedBy(service: WorkflowService, name: string): Promise<readonly number[]> {
  const { runs } = (await service.call("GET", "/api/workflow/report/runs")).body;
  const own = runs.filter(({ schedule }: { schedule: { name: string } }) => schedule.name === name);
  return own
    .map(({ schedule }: { schedule: { plannedAt: string } }) => Date.parse(schedule.plannedAt))
    .toSorted((a: number, b: number) => a - b);
}
