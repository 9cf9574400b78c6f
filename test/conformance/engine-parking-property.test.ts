import { setImmediate as nextTurn } from "node:timers/promises";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { memoryEngine } from "@portico/adapters/engine/memory";
import { memoryRecords } from "@portico/adapters/records/memory";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import type { ports } from "@portico/core";
import fc from "fast-check";
import { expect, it } from "vitest";
import { openEngine } from "./engine-subject.ts";

/** What a work does, one after another. */
type Deed =
  | { readonly is: "step"; readonly ticks: number }
  | { readonly is: "sleep"; readonly ticks: number }
  | { readonly is: "wait"; readonly name: string; readonly ticks: number | undefined }
  | { readonly is: "all" | "race"; readonly branches: readonly (readonly Deed[])[] };

/** What happens to it, one after another. */
type Event =
  | { readonly is: "signal"; readonly name: string }
  | { readonly is: "pass"; readonly ticks: number }
  | { readonly is: "cancel" };

/** So long that no step's, sleep's or wait's time ends when another's does: each adds a bit of its own to whole ticks. */
const TICK_MS = 2 ** 12;
const BITS = 12;
const names = fc.constantFrom("a", "b", "c");
const ticks = fc.integer({ min: 1, max: 6 });

const { deeds } = fc.letrec<{ deeds: readonly Deed[]; deed: Deed }>((tie) => ({
  deeds: fc.array(tie("deed"), { minLength: 1, maxLength: 4 }),
  deed: fc.oneof(
    { maxDepth: 2 },
    fc.record({ is: fc.constantFrom("step" as const, "sleep" as const), ticks }),
    fc.record({ is: fc.constant("wait" as const), name: names, ticks: fc.option(ticks, { nil: undefined }) }),
    fc.record({
      is: fc.constantFrom("all" as const, "race" as const),
      branches: fc.array(tie("deeds"), { minLength: 2, maxLength: 3 }),
    }),
  ),
}));
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ is: fc.constant("signal" as const), name: names }) },
  { weight: 4, arbitrary: fc.record({ is: fc.constant("pass" as const), ticks }) },
  { weight: 1, arbitrary: fc.record({ is: fc.constant("cancel" as const) }) },
);

/** Do what a work does, and answer everything that it was answered. */
async function perform(
  context: ports.WorkContext,
  work: readonly Deed[],
  runStep: (path: string, ms: number) => Promise<unknown>,
): Promise<unknown> {
  const bits = bitsOf(work);
  const follow = async (deeds: readonly Deed[], path: string): Promise<readonly unknown[]> => {
    const answers: unknown[] = [];
    for (const [at, deed] of deeds.entries()) answers.push(await act(deed, `${path}.${at}`));
    return answers;
  };
  const act = async (deed: Deed, path: string): Promise<unknown> => {
    const ms = "ticks" in deed && deed.ticks !== undefined ? deed.ticks * TICK_MS + 2 ** bits.get(deed)! : undefined;
    if (deed.is === "step") return context.step(path, () => runStep(path, ms!));
    if (deed.is === "sleep") return context.sleep(path, ms!);
    if (deed.is === "wait") return (await context.waitFor(deed.name, ms === undefined ? {} : { timeoutMs: ms })) ?? "nothing";
    const branches = deed.branches.map(async (branch, at) => [at, ...(await follow(branch, `${path}-${at}`))]);
    return deed.is === "all" ? Promise.all(branches) : Promise.race(branches);
  };
  return follow(work, "");
}

/** A number for each deed that takes time. */
function bitsOf(work: readonly Deed[], bits = new Map<Deed, number>()): Map<Deed, number> {
  for (const deed of work) {
    if ("ticks" in deed) bits.set(deed, bits.size);
    if ("branches" in deed) for (const branch of deed.branches) bitsOf(branch, bits);
  }
  return bits;
}

/** What becomes of a work when these things happen, each after everything that the one before led to. */
async function outcomeOf(parkAfterMs: number, work: readonly Deed[], events: readonly Event[]) {
  const clock = createManualClock();
  const due = new Set<number>();
  const after: ports.Clock["after"] = (ms, run) => {
    due.add(clock.now() + Math.max(0, ms));
    return clock.after(ms, run);
  };
  const sleep = (ms: number) => new Promise<void>((resolve) => void after(ms, resolve));
  const observed = { ...clock, after, sleep };
  const adapters = [memoryEngine({ parkAfterMs }), memoryRecords(), manualClock({ clock: observed }), memoryTelemetry({})];
  const ran: string[] = [];
  const runStep = (path: string, ms: number) => (ran.push(path), observed.sleep(ms));
  let executions = 0;
  const { engine, close } = await openEngine({ adapters, pass: clock.advance }, (opened) =>
    opened.define("kind", (context) => (executions++, perform(context, work, runStep)), { onInterrupted: "resume" }),
  );
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 40; turn++) await nextTurn();
  };
  /** The clock stands while what fell due leads to something. */
  const pass = async (ms: number): Promise<void> => {
    const end = clock.now() + ms;
    for (;;) {
      const next = Math.min(...[...due].filter((at) => at <= end));
      if (!Number.isFinite(next)) break;
      due.delete(next);
      await clock.advance(Math.max(0, next - clock.now()));
      await settle();
    }
    await clock.advance(end - clock.now());
    await settle();
  };

  await engine.ready();
  await engine.start("kind", "one", {});
  await settle();
  for (const [at, each] of events.entries()) {
    if (each.is === "signal") await engine.signal("one", each.name, `${each.name} ${at}`);
    else if (each.is === "cancel") await engine.cancel("one", "enough");
    else await pass(each.ticks * TICK_MS);
    await settle();
  }
  const status = await engine.status("one");
  await close();
  // The order of steps that begin at once is not guaranteed.
  ran.sort();
  // Of what is not over, the one says that it executes, and the other that it waits.
  const state = status?.endedAt === undefined ? "open" : status.state;
  return { executions, outcome: { state, endedAt: status?.endedAt, output: status?.output, ran } };
}

it("work that is parked comes to what it would have come to without", async () => {
  let parked = 0;
  const property = fc.asyncProperty(
    deeds.filter((work) => bitsOf(work).size <= BITS),
    fc.array(event, { minLength: 3, maxLength: 14 }),
    fc.constantFrom(0, 1, TICK_MS / 2, 2 * TICK_MS),
    async (work, events, parkAfterMs) => {
      const unparked = await outcomeOf(Number.POSITIVE_INFINITY, work, events);
      const { executions, outcome } = await outcomeOf(parkAfterMs, work, events);
      if (executions > 1) parked++;
      expect(outcome).toEqual(unparked.outcome);
    },
  );
  await fc.assert(property, { numRuns: process.env.PORTICO_LONG ? 3000 : 100 });
  // It tested what it says.
  expect(parked).toBeGreaterThan(20);
}, 600_000);
