import { setImmediate as nextTurn } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { createManualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import type { Scope } from "@portico/core";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createReadingThread, readDefinitions } from "../../../../plugins/src/workflow-service/definition/read-definitions.ts";
import { openAdapter } from "../../../conformance/open-adapter.ts";
import { secretNames, types } from "./stand-in-nodes.ts";

// These texts take seconds of processor time to read.

const LONG = 48 * 1024;
const filled = (line: string) => line.repeat(Math.floor(LONG / line.length));
const numbered = (line: (index: number) => string, count: number) => Array.from({ length: count }, (_, at) => line(at)).join("");

const undo: (() => unknown)[] = [];
const scope: Scope = { onClose: (run) => void undo.push(run), onReady: (run) => void run() };
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

it.each([
  ["an error at every line", filled("\t- a\n")],
  ["a list of numbers", `nodes: [${filled("1,")}1]`],
  ["as many keys", numbered((at) => `k${at}: 1\n`, LONG / 10)],
])("a long definition, %s: is parsed beside the event loop, and told in at most 200 problems", async (_what, text) => {
  const clock = await openAdapter(systemClock());
  undo.push(clock.close);
  const read = readDefinitions({ types, secretNames }, { clock: clock.port, log: { warn() {} } }, scope);
  let isRead = false;
  const reading = read({ name: "sample.yaml", text }).finally(() => (isRead = true));
  let turns = 0;
  for (; !isRead; turns++) await nextTurn();
  const { problems } = await reading;
  expect(problems!.length).toBeGreaterThan(0);
  expect(problems!.length).toBeLessThanOrEqual(200);
  // On the loop itself it would be a few.
  expect(turns).toBeGreaterThan(50);
});

describe("a definition that takes long to read", () => {
  const text = `nodes:\n${numbered((at) => `  n${at}: 1\n`, 70_000)}`;

  it("is named in the log, and not given up because time passes in which it is not read", async () => {
    const warned: unknown[] = [];
    const log = { warn: (...line: unknown[]) => void warned.push(line) };
    const clock = createManualClock();
    const late = readDefinitions({ types, secretNames }, { clock, log }, scope);
    const begun = vi.spyOn(Worker.prototype, "postMessage");
    undo.push(() => begun.mockRestore());
    const reading = late({ name: "large.yaml", text });
    await expect.poll(() => begun.mock.calls.length).toBe(1);
    await clock.advance(1_999);
    expect(warned).toEqual([]);
    await clock.advance(1);
    const fields = { definition: "large.yaml", longerThanMs: 2_000 };
    expect(warned).toEqual([["A workflow definition takes long to read", fields]]);
    // Suspended for an hour.
    await clock.jump(3_600_000);
    expect((await reading).problems).toMatchObject([{ line: 2 }, ...Array.from({ length: 199 }, () => ({}))]);
  });

  it("is given up when it has taken the processor time that a document may take", async () => {
    const clock = await openAdapter(systemClock());
    undo.push(clock.close);
    const thread = createReadingThread(clock.port, { readingMs: 100 });
    undo.push(thread.close);
    await expect(thread.ask({ text }, () => {})).rejects.toThrow("The job took too much processor time");
    // The next one has a thread of its own.
    expect(await thread.ask({ text: "nodes: {}" }, () => {})).toEqual({ json: '{"nodes":{}}' });
  });
});
