import { type Adapter, ports } from "@portico/core";
import { check } from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";
import { recordsHistories } from "./records-model.ts";

/** Options of `recordsConformance`. */
export interface RecordsConformanceOptions {
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
  /**
   * One adapter value opened twice meets the same store, as with a file or a server: then durability and sharing are tested too.
   */
  readonly shared?: boolean;
}

interface Task {
  owner: string;
  title?: string | null;
  rank?: number | string | boolean | null;
  nested?: { at: number };
}

const TASKS: ports.CollectionSpec = {
  name: "conformance-tasks",
  indexes: {
    owner: ["owner"],
    title: ["title"],
    rank: ["rank"],
    ownerRank: ["owner", "rank"],
    ownerTitleRank: ["owner", "title", "rank"],
    at: ["nested.at"],
  },
};

/**
 * The law of the records port, as vitest tests. `makeAdapter` is called once per test and gives an adapter with a new, empty
 * store.
 */
export function recordsConformance(
  name: string,
  makeAdapter: () => Adapter<typeof ports.records> | Promise<Adapter<typeof ports.records>>,
  { others = [], shared = false }: RecordsConformanceOptions = {},
): void {
  describeSuite(`records port: ${name}`, () => {
    let adapter: Adapter<typeof ports.records>;
    let opened: OpenAdapter<ports.Records>;
    let store: ports.Records;
    let tasks: ports.Collection<Task>;

    beforeEach(async () => {
      adapter = await makeAdapter();
      opened = await openAdapter(adapter, others);
      store = opened.port;
      tasks = store.collection<Task>(TASKS);
    });
    afterEach(() => opened.close());

    const ids = async (query: ports.Query): Promise<string[]> => (await tasks.query(query)).items.map((item) => item.id);
    const putAll = (records: Record<string, Task>): Promise<unknown> =>
      Promise.all(Object.entries(records).map(([id, value]) => tasks.put(id, value)));
    const walk = async (query: ports.Query): Promise<string[]> => {
      const found: string[] = [];
      for (let after: string | undefined, pages = 0; pages < 100; pages++) {
        const page = await tasks.query({ ...query, after });
        found.push(...page.items.map((item) => item.id));
        after = page.next;
        if (after === undefined) return found;
      }
      throw new Error("The pages do not end");
    };

    describe("one record", () => {
      it("reads back what was written, as put answered it", async () => {
        const value = { owner: "a", title: 'é \u{1f680} \n " \\', nested: { at: 1 }, list: [1, { deep: null }] };
        const stored = await tasks.put("one", value);
        expect(stored).toEqual({ id: "one", version: stored.version, value });
        expect(await tasks.get("one")).toEqual(stored);
      });

      it("answers undefined for an id that was never written, or is invalid", async () => {
        expect(await tasks.get("none")).toBeUndefined();
        await tasks.put("\ufffd", { owner: "a" });
        for (const id of ["", "x".repeat(513), "a\0", "\ud800"]) expect(await tasks.get(id)).toBeUndefined();
      });

      it("reads many at once: those that are missing, the same one twice, and what was written just before", async () => {
        const all = Array.from({ length: 1200 }, (_, at) => `record-${at}`);
        await Promise.all(all.filter((_, at) => at % 3 > 0).map((id) => tasks.put(id, { owner: id })));
        const reads = [...all, "record-1", "\ud800"].map((id) => tasks.get(id));
        const own = tasks.put("own", { owner: "own" }).then(() => tasks.get("own"));
        const found = await Promise.all(reads);
        expect(found.map((row) => row?.value.owner)).toEqual([
          ...all.map((id, at) => (at % 3 > 0 ? id : undefined)),
          "record-1",
          undefined,
        ]);
        expect(found[1]?.value).not.toBe(found[1200]?.value);
        expect((await own)?.value.owner).toBe("own");
      });

      it.each(["", "x".repeat(513), "a\0", "\ud800"])("refuses the id %j", async (id) => {
        await expect(tasks.put(id, { owner: "a" })).rejects.toThrow(TypeError);
        await expect(tasks.remove(id)).rejects.toThrow(TypeError);
        await expect(store.batch([tasks.write.put(id, { owner: "a" })])).rejects.toThrow(TypeError);
      });

      it.each(["a b", "../a", "'; --", '"', "%_*?", "x".repeat(512), "é\u{1f680}", "__proto__"])(
        "takes the id %j as it is",
        async (id) => {
          await tasks.put(id, { owner: "a" });
          expect(await tasks.get(id)).toMatchObject({ id, value: { owner: "a" } });
          expect(await ids({})).toEqual([id]);
        },
      );

      it("keeps a value as JSON does, in what put answers too", async () => {
        const value = { owner: "a", at: new Date(0), gone: undefined, odd: Number.NaN, __proto__: null } as unknown as Task;
        const kept = { owner: "a", at: "1970-01-01T00:00:00.000Z", odd: null };
        expect((await tasks.put("one", value)).value).toStrictEqual(kept);
        expect((await tasks.get("one"))?.value).toStrictEqual(kept);
      });

      it.each<[string, unknown]>([
        ["a list", []],
        ["a text", "text"],
        ["a number", 1],
        ["null", null],
        ["a function", () => 1],
        ["what JSON makes a list of", { toJSON: () => [] }],
        ["what JSON cannot hold", { big: 1n }],
      ])("refuses %s as a record", async (_what, value) => {
        await expect(tasks.put("one", value as unknown as Task)).rejects.toThrow(TypeError);
        expect(await tasks.get("one")).toBeUndefined();
      });

      it.each([{}, [], { at: 1 }, "half \ud800", "zero \0"])(
        "refuses %j at an indexed field, without repeating it",
        async (title) => {
          const refused = await tasks.put("one", { owner: "a", title: title as string }).catch((error: unknown) => error);
          expect(refused).toBeInstanceOf(TypeError);
          expect(String(refused)).not.toMatch(/half|zero/);
        },
      );

      it("accepts a record that is nested 1000 deep, and refuses deeper records", async () => {
        const deep = (levels: number): Task =>
          ({ owner: '[{"', deep: JSON.parse("[".repeat(levels - 1) + "]".repeat(levels - 1)) }) as Task;
        await tasks.put("one", deep(1000));
        expect((await tasks.get("one"))?.value).toEqual(deep(1000));
        await expect(tasks.put("one", deep(1001))).rejects.toThrow(TypeError);
      });

      it("never hands out its own copy", async () => {
        const value = { owner: "a", nested: { at: 1 } };
        const stored = await tasks.put("one", value);
        value.nested.at = 2;
        for (const answer of [stored, await tasks.get("one"), (await tasks.query()).items[0]]) {
          if (answer?.value.nested) answer.value.nested.at = 3;
        }
        expect((await tasks.get("one"))?.value).toEqual({ owner: "a", nested: { at: 1 } });
        expect((await tasks.query()).items[0]?.value).toEqual({ owner: "a", nested: { at: 1 } });
      });

      it("takes a batch's values when batch is called", async () => {
        const value = { owner: "a" };
        const written = store.batch([tasks.write.put("one", value)]);
        value.owner = "b";
        await written;
        expect((await tasks.get("one"))?.value).toEqual({ owner: "a" });
      });

      it("removes once", async () => {
        await tasks.put("one", { owner: "a" });
        expect(await tasks.remove("one")).toBe(true);
        expect(await tasks.get("one")).toBeUndefined();
        expect(await tasks.remove("one")).toBe(false);
      });
    });

    describe("optimistic locking", () => {
      it("creates a record only if it does not exist", async () => {
        const first = await tasks.put("one", { owner: "a" }, "absent");
        const conflict = { name: "RecordConflict", collection: TASKS.name, id: "one" };
        await expect(tasks.put("one", { owner: "b" }, "absent")).rejects.toMatchObject(conflict);
        expect(await tasks.get("one")).toEqual(first);
      });

      it("replaces and removes only the expected version", async () => {
        const first = await tasks.put("one", { owner: "a" });
        const second = await tasks.put("one", { owner: "b" }, first.version);
        expect(second.version).toBeGreaterThan(first.version);
        await expect(tasks.put("one", { owner: "c" }, first.version)).rejects.toThrow(ports.RecordConflict);
        await expect(tasks.remove("one", first.version)).rejects.toThrow(ports.RecordConflict);
        expect(await tasks.get("one")).toEqual(second);
        expect(await tasks.remove("one", second.version)).toBe(true);
      });

      it("finds no version without a record", async () => {
        await expect(tasks.put("none", { owner: "a" }, 1)).rejects.toThrow(ports.RecordConflict);
        await expect(tasks.remove("none", 1)).rejects.toThrow(ports.RecordConflict);
        expect(await tasks.get("none")).toBeUndefined();
      });

      it("refuses an invalid expectation instead of overwriting the record", async () => {
        const first = await tasks.put("one", { owner: "a" });
        for (const expected of [null, Number.NaN, 1.5, "1", ""]) {
          await expect(tasks.put("one", { owner: "b" }, expected as never)).rejects.toThrow(TypeError);
          await expect(tasks.remove("one", expected as never)).rejects.toThrow(TypeError);
        }
        expect(await tasks.get("one")).toEqual(first);
      });

      it("lets exactly one of many racing writers win", async () => {
        const { version } = await tasks.put("one", { owner: "nobody" });
        const outcomes = await Promise.allSettled(["a", "b", "c", "d"].map((owner) => tasks.put("one", { owner }, version)));
        expect(outcomes.map((outcome) => outcome.status).sort()).toEqual(["fulfilled", "rejected", "rejected", "rejected"]);
        const won = outcomes.find((outcome) => outcome.status === "fulfilled");
        expect(await tasks.get("one")).toEqual(won?.value);
      });

      it("never gives a version twice, not even after a remove", async () => {
        const first = await tasks.put("one", { owner: "a" }, "absent");
        await tasks.remove("one");
        const second = await tasks.put("one", { owner: "a" }, "absent");
        expect(second.version).toBeGreaterThan(first.version);
        await expect(tasks.put("one", { owner: "b" }, first.version)).rejects.toThrow(ports.RecordConflict);
        const others = await Promise.all(["x", "y", "z"].map((id) => tasks.put(id, { owner: "a" })));
        expect(new Set([first, second, ...others].map((stored) => stored.version)).size).toBe(5);
      });
    });

    describe("writes at the same time", () => {
      it("takes effect in the order of the calls", async () => {
        const results = await Promise.all([
          tasks.put("one", { owner: "a" }, "absent"),
          tasks.remove("one"),
          tasks.remove("one"),
          tasks.put("one", { owner: "b" }, "absent"),
          tasks.put("one", { owner: "c" }),
        ]);
        expect(results.slice(1, 3)).toEqual([true, false]);
        expect(await tasks.get("one")).toEqual(results[4]);
      });

      it("fails no write because of the conflict of another write", async () => {
        await tasks.put("taken", { owner: "a" });
        const outcomes = await Promise.allSettled([
          tasks.put("x", { owner: "a" }),
          tasks.put("taken", { owner: "b" }, "absent"),
          store.batch([tasks.write.put("half", { owner: "b" }), tasks.write.put("taken", { owner: "b" }, "absent")]),
          tasks.remove("taken", -1),
          store.batch([tasks.write.put("y", { owner: "b" }), tasks.write.put("z", { owner: "b" })]),
        ]);
        expect(outcomes.map((outcome) => outcome.status)).toEqual(["fulfilled", "rejected", "rejected", "rejected", "fulfilled"]);
        expect(await ids({})).toEqual(["taken", "x", "y", "z"]);
      });

      it("keeps every one of many", async () => {
        const count = 2500;
        await Promise.all(Array.from({ length: count }, (_, at) => tasks.put(`task-${at}`, { owner: "a" })));
        expect(new Set(await walk({ limit: 1000 })).size).toBe(count);
      });
    });

    describe("batch", () => {
      it("writes to several collections together", async () => {
        const notes = store.collection<{ text: string }>({ name: "conformance-notes" });
        await tasks.put("old", { owner: "a" });
        await store.batch([
          tasks.write.put("one", { owner: "a" }),
          notes.write.put("one", { text: "n" }),
          tasks.write.remove("old"),
        ]);
        expect(await ids({})).toEqual(["one"]);
        expect((await notes.get("one"))?.value).toEqual({ text: "n" });
      });

      it("writes nothing if one write conflicts, and names the conflicting one", async () => {
        const before = await tasks.put("taken", { owner: "a" });
        const writes = [
          tasks.write.put("one", { owner: "a" }),
          tasks.write.remove("taken"),
          tasks.write.put("taken", { owner: "b" }),
          tasks.write.put("two", { owner: "a" }, 12345),
        ];
        await expect(store.batch(writes)).rejects.toMatchObject({ name: "RecordConflict", id: "two" });
        expect(await tasks.get("one")).toBeUndefined();
        expect(await tasks.get("taken")).toEqual(before);
      });

      it("does its writes in order, each seeing the one before", async () => {
        await store.batch([
          tasks.write.put("one", { owner: "a" }, "absent"),
          tasks.write.remove("one"),
          tasks.write.put("one", { owner: "b" }, "absent"),
        ]);
        expect((await tasks.get("one"))?.value).toEqual({ owner: "b" });
        const twice = [tasks.write.put("two", { owner: "a" }, "absent"), tasks.write.put("two", { owner: "b" }, "absent")];
        await expect(store.batch(twice)).rejects.toThrow(ports.RecordConflict);
        expect(await tasks.get("two")).toBeUndefined();
      });

      it("takes removes of what is not there, and no writes at all", async () => {
        await store.batch([]);
        await store.batch([tasks.write.remove("none"), tasks.write.remove("none")]);
        expect(await ids({})).toEqual([]);
      });

      it("refuses a collection that this store has not opened", async () => {
        const foreign = { collection: "elsewhere", id: "one", value: {}, expected: undefined };
        await expect(store.batch([tasks.write.put("one", { owner: "a" }), foreign])).rejects.toThrow(TypeError);
        expect(await tasks.get("one")).toBeUndefined();
      });
    });

    describe("query", () => {
      it("orders by id in UTF-8 bytes by default", async () => {
        const wanted = ["A", "B", "a", "b", "z", "é", "\ue000", "\uffee", "\u{10000}", "\u{1f680}"];
        await putAll(Object.fromEntries([...wanted].reverse().map((id) => [id, { owner: "a" }])));
        expect(await ids({})).toEqual(wanted);
        expect(await walk({ limit: 1 })).toEqual(wanted);
      });

      it("orders nothing before numbers before texts, and texts by UTF-8 bytes", async () => {
        const ranks = [
          undefined,
          null,
          -1.5,
          false,
          0.5,
          true,
          2,
          10,
          2 ** 60,
          1e300,
          "",
          "10",
          "2",
          "Z",
          "a",
          "é",
          "\uffee",
          "\u{10000}",
        ];
        await putAll(Object.fromEntries(ranks.map((rank, at) => [String(at).padStart(2, "0"), { owner: "a", rank }])));
        const ascending = ranks.map((_, at) => String(at).padStart(2, "0"));
        for (const limit of [1, 2, 5, 100]) {
          expect(await walk({ order: { by: "rank", direction: "ascending" }, limit })).toEqual(ascending);
          expect(await walk({ order: { by: "rank", direction: "descending" }, limit })).toEqual([...ascending].reverse());
          const mine = { where: { owner: "a" }, limit };
          expect(await walk({ ...mine, order: { by: "rank", direction: "ascending" } })).toEqual(ascending);
        }
      });

      it("orders ties by id, in the direction of the order", async () => {
        await putAll({
          c: { owner: "a", rank: 1 },
          a: { owner: "a", rank: 1 },
          b: { owner: "a", rank: 1 },
          d: { owner: "a", rank: 0 },
        });
        for (const limit of [1, 2, 3]) {
          expect(await walk({ order: { by: "rank", direction: "ascending" }, limit })).toEqual(["d", "a", "b", "c"]);
          expect(await walk({ order: { by: "rank", direction: "descending" }, limit })).toEqual(["c", "b", "a", "d"]);
        }
      });

      it("finds what equals all of where, in type too", async () => {
        await putAll({
          text: { owner: "a", rank: "1" },
          one: { owner: "a", rank: 1 },
          true: { owner: "a", rank: true },
          zero: { owner: "a", rank: 0 },
          false: { owner: "a", rank: false },
          null: { owner: "a", rank: null },
          other: { owner: "b", rank: 1 },
          huge: { owner: "a", rank: 2 ** 60 },
          vast: { owner: "a", rank: 2 ** 63 },
          empty: { owner: "a", rank: "" },
        });
        const found = async (rank: string | number | boolean): Promise<string[]> => ids({ where: { owner: "a", rank } });
        expect(await found("1")).toEqual(["text"]);
        expect(await found(1)).toEqual(["one"]);
        expect(await found(true)).toEqual(["true"]);
        expect(await found(0)).toEqual(["zero"]);
        expect(await found(-0)).toEqual(["zero"]);
        expect(await found(false)).toEqual(["false"]);
        expect(await found(2 ** 60)).toEqual(["huge"]);
        expect(await found(2 ** 63)).toEqual(["vast"]);
        expect(await found("")).toEqual(["empty"]);
        for (const nothing of [Number.NaN, Number.POSITIVE_INFINITY, "\ud800", "\0"]) expect(await found(nothing)).toEqual([]);
      });

      it("reads a dot path, and enters no list", async () => {
        await putAll({ one: { owner: "a", nested: { at: 1 } }, two: { owner: "a", nested: { at: 2 } } });
        await tasks.put("list", { owner: "a", nested: [{ at: 1 }] } as never);
        await tasks.put("flat", { owner: "a", "nested.at": 1 } as never);
        expect(await ids({ where: { "nested.at": 1 } })).toEqual(["one"]);
        expect(await ids({ order: { by: "nested.at", direction: "descending" } })).toEqual(["two", "one", "list", "flat"]);
      });

      it("covers where in any order of its fields, also by an order that where has settled", async () => {
        await putAll({
          b: { owner: "a", title: "t", rank: 2 },
          a: { owner: "a", title: "t", rank: 3 },
          c: { owner: "a", title: "u" },
        });
        const where = { title: "t", owner: "a" };
        expect(await ids({ where, order: { by: "rank", direction: "ascending" } })).toEqual(["b", "a"]);
        expect(await ids({ where: { rank: 2, ...where } })).toEqual(["b"]);
        expect(await ids({ where: { owner: "a" }, order: { by: "owner", direction: "descending" } })).toEqual(["c", "b", "a"]);
      });

      it.each<[string, ports.Query]>([
        ["a field without an index", { where: { colour: "red" } }],
        ["an order without an index", { order: { by: "colour", direction: "ascending" } }],
        ["a pair without an index", { where: { title: "t", rank: 1 } }],
        ["an order that the index does not end with", { where: { owner: "a" }, order: { by: "title", direction: "ascending" } }],
        ["a part of an index's fields", { where: { owner: "a", title: "t" } }],
        ["the id, which is no field", { order: { by: "id", direction: "descending" } }],
      ])("refuses %s", async (_what, query) => {
        await expect(tasks.query(query)).rejects.toThrow(ports.RecordsUnindexed);
      });

      it("refuses an invalid where value instead of answering all records", async () => {
        await tasks.put("one", { owner: "a" });
        for (const owner of [undefined, null, {}, ["a"]]) {
          await expect(tasks.query({ where: { owner } as never })).rejects.toThrow(TypeError);
        }
      });

      it("answers 100 unless told otherwise, and refuses a limit outside 1-1000", async () => {
        await Promise.all(Array.from({ length: 101 }, (_, at) => tasks.put(`task-${at}`, { owner: "a" })));
        expect((await tasks.query()).items).toHaveLength(100);
        expect((await tasks.query({ limit: 1000 })).items).toHaveLength(101);
        for (const limit of [0, -1, 1.5, 1001, Number.NaN]) await expect(tasks.query({ limit })).rejects.toThrow(RangeError);
      });
    });

    describe("pages", () => {
      it("has no next page after the last record", async () => {
        await putAll({ a: { owner: "a" }, b: { owner: "a" } });
        expect((await tasks.query({ limit: 2 })).next).toBeUndefined();
        expect((await tasks.query({ limit: 1 })).next).toBeTypeOf("string");
        expect(await tasks.query({ where: { owner: "none" } })).toEqual({ items: [], next: undefined });
      });

      it("continues after its last record, also if that one was removed and others were added", async () => {
        await putAll(Object.fromEntries([1, 3, 5, 7].map((rank) => [`r${rank}`, { owner: "a", rank }])));
        const query: ports.Query = { where: { owner: "a" }, order: { by: "rank", direction: "ascending" }, limit: 2 };
        const first = await tasks.query(query);
        expect(first.items.map((item) => item.id)).toEqual(["r1", "r3"]);
        await tasks.remove("r3");
        await putAll({ r2: { owner: "a", rank: 2 }, r4: { owner: "a", rank: 4 } });
        const second = await tasks.query({ ...query, after: first.next });
        expect(second.items.map((item) => item.id)).toEqual(["r4", "r5"]);
        expect((await tasks.query({ ...query, after: second.next })).items.map((item) => item.id)).toEqual(["r7"]);
      });

      it("takes a cursor with another limit, and with where in another order", async () => {
        await putAll(Object.fromEntries(["a", "b", "c"].map((id) => [id, { owner: "a", title: "t" }])));
        const order = { by: "rank", direction: "ascending" } as const;
        const { next } = await tasks.query({ where: { owner: "a", title: "t" }, order, limit: 1 });
        expect(await ids({ where: { title: "t", owner: "a" }, order, after: next, limit: 5 })).toEqual(["b", "c"]);
      });

      it("begins behind a place of the caller's own, which no record needs to have", async () => {
        await putAll(Object.fromEntries([1, 3, 3.5, 5].map((rank) => [`r${rank}`, { owner: "a", rank }])));
        await putAll({
          r3b: { owner: "a", rank: 3 },
          none: { owner: "a" },
          text: { owner: "a", rank: "x" },
          other: { owner: "b", rank: 4 },
        });
        const behind = (value: ports.Place["value"], id: string, direction: "ascending" | "descending") =>
          ids({ where: { owner: "a" }, order: { by: "rank", direction }, after: { value, id } });
        expect(await behind(3, "r3", "ascending")).toEqual(["r3b", "r3.5", "r5", "text"]);
        expect(await behind(3, "", "ascending")).toEqual(["r3", "r3b", "r3.5", "r5", "text"]);
        expect(await behind(4, "", "ascending")).toEqual(["r5", "text"]);
        expect(await behind(null, "none", "ascending")).toEqual(["r1", "r3", "r3b", "r3.5", "r5", "text"]);
        expect(await behind(3, "r3b", "descending")).toEqual(["r3", "r1", "none"]);
        expect(await behind(3, "", "descending")).toEqual(["r1", "none"]);
        expect(await behind("w", "", "descending")).toEqual(["r5", "r3.5", "r3b", "r3", "r1", "none"]);
        expect(await ids({ after: { value: null, id: "r3" } })).toEqual(["r3.5", "r3b", "r5", "text"]);
      });

      it("answers the places of a query, from which its pages continue: of texts, numbers, booleans, missing values and huge numbers", async () => {
        const ranks = [3, 3, 0.1, 2 ** 60, -1e21, true, false, "text", "", null];
        await putAll(Object.fromEntries(ranks.map((rank, at) => [`r${at}`, { owner: "a", rank }])));
        await putAll({ none: { owner: "a" }, other: { owner: "b", rank: 1 } });
        const asNumber = (rank: Task["rank"]) => (typeof rank === "boolean" ? Number(rank) : (rank ?? null));
        for (const direction of ["ascending", "descending"] as const) {
          const query: ports.Query = { where: { owner: "a" }, order: { by: "rank", direction } };
          const expected = (await tasks.query(query)).items.map(({ id, value }) => ({ id, value: asNumber(value.rank) }));
          expect(expected).toHaveLength(ranks.length + 1);
          expect(await tasks.places(query)).toEqual({ places: expected, isLast: true });
          const walked: ports.Place[] = [];
          for (let isEnd = false; !isEnd;) {
            const { places, isLast } = await tasks.places({ ...query, limit: 2, after: walked.at(-1) });
            walked.push(...places);
            isEnd = isLast;
          }
          expect(walked).toEqual(expected);
        }
        expect(await tasks.places({ limit: 1 })).toEqual({ places: [{ id: "none", value: null }], isLast: false });
        expect(await tasks.places({ where: { owner: "nobody" } })).toEqual({ places: [], isLast: true });
        await expect(tasks.places({ where: { title: "t", rank: 1 } })).rejects.toThrow(ports.RecordsUnindexed);
      });

      it("refuses what can be no place", async () => {
        const order = { by: "rank", direction: "ascending" } as const;
        for (const place of [
          {},
          { value: 1 },
          { value: {}, id: "a" },
          { value: Number.NaN, id: "a" },
          { value: "\ud800", id: "a" },
          { value: 1, id: "\0" },
        ])
          await expect(tasks.query({ where: { owner: "a" }, order, after: place as ports.Place })).rejects.toThrow(TypeError);
        await expect(tasks.query({ after: { value: 1, id: "a" } })).rejects.toThrow(TypeError);
      });

      it("refuses an invalid cursor, or one of another query", async () => {
        await putAll(Object.fromEntries(["a", "b", "c"].map((id) => [id, { owner: "a" }])));
        const { next } = await tasks.query({ where: { owner: "a" }, limit: 1 });
        const forged = Buffer.from(JSON.stringify(["x", null, "a"])).toString("base64url");
        for (const after of ["", "x", "?", "bnVsbA", "W10", `${next}=`, `${next}A`, forged]) {
          await expect(tasks.query({ where: { owner: "a" }, after })).rejects.toThrow(ports.RecordCursorInvalid);
        }
        const foreign: ports.Query[] = [
          {},
          { where: { owner: "b" } },
          { where: { owner: "a" }, order: { by: "rank", direction: "ascending" } },
          { where: { owner: "a" }, order: { by: "owner", direction: "descending" } },
        ];
        for (const query of foreign) {
          await expect(tasks.query({ ...query, after: next })).rejects.toThrow(ports.RecordCursorInvalid);
        }
        const notes = store.collection({ name: "conformance-notes", indexes: { owner: ["owner"] } });
        await expect(notes.query({ where: { owner: "a" }, after: next })).rejects.toThrow(ports.RecordCursorInvalid);
      });
    });

    describe("collections", () => {
      it("are the same for the same spec, with any names of its indexes", () => {
        const renamed = Object.fromEntries(
          Object.entries(TASKS.indexes ?? {}).map(([key, fields]) => [`${key}-renamed`, fields]),
        );
        expect(store.collection(TASKS)).toBe(tasks);
        expect(store.collection({ ...TASKS, indexes: renamed })).toBe(tasks);
        expect(() => store.collection({ name: TASKS.name })).toThrow(TypeError);
      });

      it("keep their records apart", async () => {
        const notes = store.collection<{ text: string }>({ name: "conformance-notes" });
        await tasks.put("one", { owner: "a" });
        expect(await notes.get("one")).toBeUndefined();
        expect((await notes.query()).items).toEqual([]);
      });

      it.each(["", "x".repeat(65), "Tasks", "a_b", "a b", 'a"', "a;", "é"])("refuse the name %j", (bad) => {
        expect(() => store.collection({ name: bad })).toThrow(TypeError);
      });

      it.each(["", "a.", ".a", "a..b", "a b", "a'", "$.a", "a[0]", "1a", "a-b", "é"])("refuse the field %j", (field) => {
        expect(() => store.collection({ name: "fields", indexes: { bad: [field] } })).toThrow(TypeError);
      });

      it("refuse an index without fields, with too many, or with one twice", () => {
        for (const bad of [[], [..."abcdefghi"], ["a", "a"]]) {
          expect(() => store.collection({ name: "fields", indexes: { bad } })).toThrow(TypeError);
        }
      });
    });

    describe("closing", () => {
      it("finishes the writes that were called before it, and refuses everything after it", async () => {
        const written = Promise.all([tasks.put("one", { owner: "a" }), store.batch([tasks.write.put("two", { owner: "a" })])]);
        await opened.close();
        await expect(written).resolves.toHaveLength(2);
        const calls = [
          () => tasks.get("one"),
          () => tasks.put("one", { owner: "a" }),
          () => tasks.remove("one"),
          () => tasks.query(),
          () => store.batch([tasks.write.remove("one")]),
        ];
        for (const call of calls) await expect(call()).rejects.toThrow(ports.RecordsUnavailable);
        expect(() => store.collection({ name: "late" })).toThrow(ports.RecordsUnavailable);
      });
    });

    it("behaves as a map, for any operations in any order", async () => {
      const details = await check(recordsHistories(store), { numRuns: 60 });
      expect(details.counterexample).toBeNull();
      expect(details.failed, String(details.errorInstance ?? "")).toBe(false);
    });

    if (!shared) return;
    describe("a store opened twice", () => {
      let other: OpenAdapter<ports.Records>;
      let theirs: ports.Collection<Task>;
      beforeEach(async () => {
        other = await openAdapter(adapter, others);
        theirs = other.port.collection<Task>(TASKS);
      });
      afterEach(() => other.close());

      it("shows each the other's finished writes at once", async () => {
        const stored = await tasks.put("one", { owner: "a" });
        expect(await theirs.get("one")).toEqual(stored);
        expect((await theirs.query({ where: { owner: "a" } })).items).toEqual([stored]);
        await theirs.remove("one", stored.version);
        expect(await tasks.get("one")).toBeUndefined();
      });

      it("lets one of two win, and gives no version twice", async () => {
        const outcomes = await Promise.allSettled([
          tasks.put("one", { owner: "a" }, "absent"),
          theirs.put("one", { owner: "b" }, "absent"),
        ]);
        expect(outcomes.map((outcome) => outcome.status).sort()).toEqual(["fulfilled", "rejected"]);
        const written = await Promise.all(
          Array.from({ length: 40 }, (_, at) => (at % 2 ? tasks : theirs).put(`task-${at}`, { owner: "a" })),
        );
        expect(new Set(written.map((stored) => stored.version)).size).toBe(40);
      });

      it("keeps everything when it is closed and opened again, versions too", async () => {
        const stored = await tasks.put("one", { owner: "a" });
        const removed = await tasks.put("two", { owner: "a" });
        await tasks.remove("two");
        await Promise.all([opened.close(), other.close()]);
        opened = await openAdapter(adapter, others);
        const again = opened.port.collection<Task>(TASKS);
        expect((await again.query({ where: { owner: "a" } })).items).toEqual([stored]);
        expect((await again.put("two", { owner: "a" })).version).toBeGreaterThan(removed.version);
      });

      it("answers by an index that was declared after the records were written", async () => {
        await other.port.collection({ name: "grown" }).put("one", { colour: "red" });
        const grown = store.collection({ name: "grown", indexes: { colour: ["colour"] } });
        expect((await grown.query({ where: { colour: "red" } })).items.map((item) => item.id)).toEqual(["one"]);
      });
    });
  });
}
