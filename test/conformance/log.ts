import { type Adapter, ports } from "@portico/core";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The adapter under test, and what it needs. */
export interface LogUnderTest {
  readonly adapter: Adapter<typeof ports.log>;
  /** What the adapter needs beside: its records, in a store that is empty. */
  readonly others: readonly Adapter[];
}

/** Options of `logConformance`. */
export interface LogConformanceOptions {
  /** Whether a second adapter over the same place, opened with the same `LogUnderTest`, sees the first one's entries. Default: false. */
  readonly shared?: boolean;
}

interface Note {
  readonly text: string;
}

/** The law of the log port, as vitest tests. `make` is called once per test. */
export function logConformance(
  name: string,
  make: () => LogUnderTest | Promise<LogUnderTest>,
  { shared = false }: LogConformanceOptions = {},
): void {
  describeSuite(`log port: ${name}`, () => {
    let made: LogUnderTest;
    let records: ports.Records;
    let opened: OpenAdapter<ports.EventLog>;
    let log: ports.EventLog;
    const open = (): Promise<OpenAdapter<ports.EventLog>> => openAdapter(made.adapter, made.others);
    beforeEach(async () => {
      made = await make();
      const seen = spyOnRecords(made);
      opened = await openAdapter(seen.adapter, made.others);
      log = opened.port;
      records = seen.records();
    });
    afterEach(() => opened.close());

    const fill = async (stream: string, count: number): Promise<void> => {
      for (let from = 1; from <= count; from += 500) {
        const entries = Array.from({ length: Math.min(500, count - from + 1) }, (_, at) => ({
          stream,
          entry: { text: `${from + at}` },
        }));
        await log.appendAll(entries);
      }
    };

    describe("append", () => {
      it("numbers the entries of a stream from 1, each one more than the newest", async () => {
        expect(await log.append("a", { text: "one" })).toBe(1);
        expect(await log.append("a", { text: "two" })).toBe(2);
        expect(await log.append("b", { text: "other" })).toBe(1);
        expect(await log.append("a", { text: "three" })).toBe(3);
      });

      it("numbers entries that are appended at once in the order of the calls, without a gap", async () => {
        const sequences = await Promise.all(Array.from({ length: 200 }, (_, at) => log.append("a", { text: `${at}` })));
        expect(sequences).toEqual(Array.from({ length: 200 }, (_, at) => at + 1));
        expect(await texts(log, "a")).toEqual(Array.from({ length: 200 }, (_, at) => `${at}`));
      });

      it("appends several entries, also to several streams, and answers their numbers in order", async () => {
        await log.append("a", { text: "before" });
        const entries = [
          { stream: "a", entry: { text: "1" } },
          { stream: "b", entry: { text: "2" } },
          { stream: "a", entry: { text: "3" } },
        ];
        expect(await log.appendAll(entries)).toEqual([2, 1, 3]);
        expect(await texts(log, "a")).toEqual(["before", "1", "3"]);
        expect(await log.appendAll([])).toEqual([]);
      });

      it("appends no entry of a batch if one of them cannot be stored", async () => {
        const entries = [
          { stream: "a", entry: { text: "fine" } },
          { stream: "a", entry: [] },
        ];
        await expect(log.appendAll(entries)).rejects.toThrow(TypeError);
        expect(await log.count("a")).toBe(0);
      });

      it.each([
        ["a list", []],
        ["what JSON leaves out", (() => {}) as unknown as object],
        ["a text", "text" as unknown as object],
        ["null", null as unknown as object],
        ["a bigint inside", { text: 1n }],
      ])("refuses an entry that is %s, with a TypeError that does not repeat it", async (_what, entry) => {
        await expect(log.append("a", entry)).rejects.toThrow(TypeError);
        expect(await log.count("a")).toBe(0);
      });

      it.each([
        ["", "nothing"],
        ["a\0b", "U+0000"],
        ["\ud800", "half a character"],
        ["x".repeat(513), "513 characters"],
      ])("refuses the stream name %j: %s", async (stream) => {
        await expect(log.append(stream, { text: "x" })).rejects.toThrow(TypeError);
        await expect(log.count(stream)).rejects.toThrow(TypeError);
      });

      it("keeps streams apart whose names differ in case, in accents, or by what a pattern would match", async () => {
        const names = ["a", "A", "á", "a%", "a_", "a/b", "a ", "'a'", "x".repeat(512)];
        for (const stream of names) await log.append(stream, { text: stream });
        for (const stream of names) expect(await texts(log, stream)).toEqual([stream]);
      });

      it("takes an entry of LOG_ENTRY_BYTES, and refuses one more byte with LogEntryTooLarge", async () => {
        const frame = JSON.stringify({ text: "" }).length;
        const room = ports.LOG_ENTRY_BYTES - frame;
        const full = "é".repeat(Math.floor(room / 2)) + "x".repeat(room % 2);
        expect(await log.append("a", { text: full })).toBe(1);
        await expect(log.append("a", { text: `${full}x` })).rejects.toThrow(ports.LogEntryTooLarge);
        for await (const found of log.read("a"))
          expect(!found.damaged && (found.entry as unknown as Note).text === full).toBe(true);
      });

      it("keeps an entry as JSON keeps it", async () => {
        const entry = { text: "é \u{1f680} \u2028 \0 \\", list: [1, null, { deep: true }], gone: undefined, when: new Date(0) };
        await log.append("a", entry);
        const [found] = await all(log.read("a"));
        expect(found).toEqual({ sequence: 1, damaged: false, entry: JSON.parse(JSON.stringify(entry)) });
      });
    });

    describe("append with records", () => {
      it("writes the records together with the entries", async () => {
        const notes = records.collection<Note>({ name: "notes" });
        const writes = [notes.write.put("one", { text: "1" }, "absent"), notes.write.put("two", { text: "2" })];
        expect(await log.appendAll([{ stream: "a", entry: { text: "x" } }], { records: writes })).toEqual([1]);
        expect((await notes.get("one"))?.value).toEqual({ text: "1" });
        expect((await notes.get("two"))?.value).toEqual({ text: "2" });
      });

      it("appends nothing and writes nothing when a record is not what was expected", async () => {
        const notes = records.collection<Note>({ name: "notes" });
        await notes.put("one", { text: "there" });
        const writes = [notes.write.put("two", { text: "2" }), notes.write.put("one", { text: "1" }, "absent")];
        const appended = log.appendAll([{ stream: "a", entry: { text: "x" } }], { records: writes });
        await expect(appended).rejects.toThrow(ports.RecordConflict);
        expect(await log.count("a")).toBe(0);
        expect(await notes.get("two")).toBeUndefined();
      });

      it("leaves what others append at the same time alone when one conflicts", async () => {
        const notes = records.collection<Note>({ name: "notes" });
        const append = (at: number) =>
          log.appendAll([{ stream: "a", entry: { text: `${at}` } }], {
            records: [notes.write.put("one", { text: `${at}` }, "absent")],
          });
        const ends = await Promise.allSettled([
          log.append("a", { text: "before" }),
          append(1),
          append(2),
          log.append("a", { text: "after" }),
        ]);
        expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
        expect((await texts(log, "a")).toSorted()).toEqual(["1", "after", "before"]);
      });

      it("takes records alone", async () => {
        const notes = records.collection<Note>({ name: "notes" });
        expect(await log.appendAll([], { records: [notes.write.put("one", { text: "1" })] })).toEqual([]);
        expect((await notes.get("one"))?.value).toEqual({ text: "1" });
      });
    });

    describe("read", () => {
      it("gives nothing of a stream that does not exist", async () => {
        expect(await all(log.read("none"))).toEqual([]);
        expect(await all(log.read("none", { backwards: true, from: 3 }))).toEqual([]);
        expect(await log.count("none")).toBe(0);
      });

      it.each([
        ["from a sequence number, inclusive", { from: 1199 }, ["1199", "1200", "1201"]],
        ["a number of entries", { limit: 2 }, ["1", "2"]],
        ["from a number on, so many", { from: 501, limit: 3 }, ["501", "502", "503"]],
        ["past the newest: nothing", { from: 1202 }, []],
        ["backwards from the newest", { backwards: true, limit: 3 }, ["1201", "1200", "1199"]],
        ["backwards from a number, inclusive", { backwards: true, from: 2 }, ["2", "1"]],
        ["backwards from past the newest: from the newest", { backwards: true, from: 9999, limit: 1 }, ["1201"]],
        ["none at all", { limit: 0 }, []],
      ])("reads %s", async (_what, options, expected) => {
        await fill("a", 1201);
        expect(await texts(log, "a", options)).toEqual(expected);
      });

      it("reads a long stream whole, in both directions", async () => {
        await fill("a", 2500);
        await fill("b", 10);
        const expected = Array.from({ length: 2500 }, (_, at) => `${at + 1}`);
        expect(await texts(log, "a")).toEqual(expected);
        expect(await texts(log, "a", { backwards: true })).toEqual(expected.toReversed());
        expect(await log.count("a")).toBe(2500);
      });

      it.each([{ from: 0 }, { from: -1 }, { from: 1.5 }, { from: Number.NaN }, { limit: -1 }, { limit: 0.5 }])(
        "refuses %j with a RangeError",
        async (options) => {
          await expect(async () => all(log.read("a", options))).rejects.toThrow(RangeError);
        },
      );

      it("reads on over entries that are appended meanwhile, and ends at the newest", async () => {
        await fill("a", 3);
        const seen: string[] = [];
        for await (const found of log.read("a", { limit: 6 })) {
          if (seen.push(textOf(found)) <= 3) await log.append("a", { text: `later ${seen.length}` });
        }
        expect(seen.slice(0, 3)).toEqual(["1", "2", "3"]);
        expect(await log.count("a")).toBe(6);
      });

      it("stops with the signal's reason", async () => {
        await fill("a", 600);
        const stop = new AbortController();
        const reading = (async () => {
          for await (const found of log.read("a", { signal: stop.signal }))
            if (found.sequence === 10) stop.abort(new Error("enough"));
        })();
        await expect(reading).rejects.toThrow("enough");
        await expect(all(log.read("a", { signal: AbortSignal.abort(new Error("at once")) }))).rejects.toThrow("at once");
      });

      it("can be left early, and read again", async () => {
        await fill("a", 600);
        for await (const _ of log.read("a")) break;
        expect(await texts(log, "a", { limit: 1 })).toEqual(["1"]);
        await log.append("a", { text: "after" });
        expect(await texts(log, "a", { backwards: true, limit: 1 })).toEqual(["after"]);
      });

      it("gives every reader entries of its own", async () => {
        await log.append("a", { text: "x", deep: { list: [1] } });
        const [first] = await all(log.read("a"));
        if (first && !first.damaged) (first.entry["deep"] as { list: number[] }).list.push(2);
        const [second] = await all(log.read("a"));
        expect(second).toEqual({ sequence: 1, damaged: false, entry: { text: "x", deep: { list: [1] } } });
      });
    });

    describe("erase", () => {
      it("takes the content of entries, which keep their positions", async () => {
        for (const at of [1, 2, 3, 4]) await log.append("a", { at });
        await log.append("b", { at: 1 });
        await log.erase("a", [2, 4, 9, 0, -1, 1.5]);
        await log.erase("a", []);
        await log.erase("missing", [1]);
        const read = async (stream: string, backwards = false) => {
          const entries: unknown[] = [];
          for await (const each of log.read(stream, { backwards })) entries.push(each.damaged ? each.sequence : each.entry);
          return entries;
        };
        expect(await read("a")).toEqual([{ at: 1 }, 2, { at: 3 }, 4]);
        expect(await read("a", true)).toEqual([4, { at: 3 }, 2, { at: 1 }]);
        expect(await read("b")).toEqual([{ at: 1 }]);
        expect(await log.count("a")).toBe(4);
        expect(await log.append("a", { at: 5 })).toBe(5);
        await log.erase("a", [2]);
        expect(await log.count("missing")).toBe(0);
      });
    });

    describe("remove", () => {
      it("removes a stream with all its entries, and its numbers begin again", async () => {
        await fill("a", 1100);
        await fill("b", 2);
        expect(await log.remove("a")).toBe(true);
        expect(await log.count("a")).toBe(0);
        expect(await texts(log, "a")).toEqual([]);
        expect(await log.remove("a")).toBe(false);
        expect(await log.append("a", { text: "again" })).toBe(1);
        expect(await texts(log, "a")).toEqual(["again"]);
        expect(await texts(log, "b")).toEqual(["1", "2"]);
      });
    });

    it("behaves as a simple model, for any operations in any order", async () => {
      const stream = fc.constantFrom("a", "b");
      const step = fc.oneof(
        fc.record({ do: fc.constant("append" as const), stream, text: fc.string({ maxLength: 5 }) }),
        fc.record({ do: fc.constant("remove" as const), stream }),
        fc.record({
          do: fc.constant("read" as const),
          stream,
          options: fc.record(
            { from: fc.integer({ min: 1, max: 8 }), limit: fc.integer({ min: 0, max: 8 }), backwards: fc.boolean() },
            { requiredKeys: [] },
          ),
        }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
          const model = new Map<string, string[]>([
            ["a", []],
            ["b", []],
          ]);
          for (const name of model.keys()) await log.remove(name);
          for (const each of steps) {
            const entries = model.get(each.stream)!;
            if (each.do === "append") expect(await log.append(each.stream, { text: each.text })).toBe(entries.push(each.text));
            else if (each.do === "remove") expect(await log.remove(each.stream)).toBe(entries.splice(0).length > 0);
            else expect(await texts(log, each.stream, each.options)).toEqual(readModel(entries, each.options));
            expect(await log.count(each.stream)).toBe(entries.length);
          }
        }),
        { numRuns: 40 },
      );
    });

    it("is unavailable after closing", async () => {
      await log.append("a", { text: "x" });
      const closed = await open();
      await closed.close();
      await expect(closed.port.append("a", { text: "y" })).rejects.toThrow(ports.LogUnavailable);
      await expect(closed.port.count("a")).rejects.toThrow(ports.LogUnavailable);
      await expect(all(closed.port.read("a"))).rejects.toThrow(ports.LogUnavailable);
      await expect(closed.port.remove("a")).rejects.toThrow(ports.LogUnavailable);
    });

    if (shared) {
      it("shares its streams with another that is open at the same place: no number is given twice, and none left out", async () => {
        const other = await open();
        try {
          const writers = [log, other.port].flatMap((each, which) =>
            Array.from({ length: 50 }, (_, at) => each.append("a", { text: `${which}-${at}` })),
          );
          const sequences = await Promise.all(writers);
          expect(sequences.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, at) => at + 1));
          expect((await texts(other.port, "a")).length).toBe(100);
          expect(await log.count("a")).toBe(100);
        } finally {
          await other.close();
        }
      });

      it("has what was appended when it is opened again", async () => {
        await fill("a", 3);
        await log.remove("gone");
        const again = await open();
        expect(await texts(again.port, "a")).toEqual(["1", "2", "3"]);
        expect(await again.port.append("a", { text: "4" })).toBe(4);
        await again.close();
      });
    }
  });
}

async function all(reading: AsyncIterable<ports.LogEntry>): Promise<readonly ports.LogEntry[]> {
  const found: ports.LogEntry[] = [];
  for await (const each of reading) found.push(each);
  return found;
}

async function texts(log: ports.EventLog, stream: string, options?: ports.ReadOptions): Promise<readonly string[]> {
  return (await all(log.read(stream, options))).map(textOf);
}

function textOf(found: ports.LogEntry): string {
  return found.damaged ? "(damaged)" : (found.entry as unknown as Note).text;
}

function readModel(entries: readonly string[], { from, limit, backwards }: Omit<ports.ReadOptions, "signal">): readonly string[] {
  const ordered = backwards ? entries.slice(0, from ?? entries.length).reverse() : entries.slice((from ?? 1) - 1);
  return ordered.slice(0, limit ?? ordered.length);
}

/** The records that the log is given, for a test that writes with both. */
function spyOnRecords({ adapter }: LogUnderTest): { readonly adapter: Adapter<typeof ports.log>; records(): ports.Records } {
  let records: ports.Records | undefined;
  const open: typeof adapter.spec.open = (given, options, scope) => {
    records = (given as { readonly records: ports.Records }).records;
    return adapter.spec.open(given, options, scope);
  };
  return {
    adapter: { ...adapter, spec: { ...adapter.spec, needs: { ...adapter.spec.needs, records: ports.records }, open } },
    records: () => records!,
  };
}
