import type { Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { openAdapter } from "./open-adapter.ts";

/** The adapter under test. Every call of `adapter` is another process on the same store. */
export interface UsageSubjectUnderTest {
  /** A new adapter with the time zone UTC, and with the price of 2 for input and 10 for output of the model `priced`. */
  readonly adapter: () => Adapter<typeof ports.usage>;
  /** Adapters that fill what the adapter needs. Opened once for all processes where they keep the counts. */
  readonly others: () => readonly Adapter[];
  /** Lets this much time pass for the adapters. */
  readonly pass: (ms: number) => Promise<void>;
  /** The time that the adapters see. The first is a midnight in UTC. */
  readonly now: () => number;
  readonly close?: () => Promise<void>;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const alive = new AbortController().signal;
const agent = (more: Partial<ports.UsageSubject> = {}): ports.UsageSubject => ({
  ...{ source: "agent", provider: "main", model: "m", userId: "ada", agentId: "helper" },
  ...more,
});
const used = (inputTokens: number, outputTokens: number): ports.UsageEnd => ({ inputTokens, outputTokens });

/** The law of the port `usage`, as vitest tests. `make` is called once per test. */
export function usageConformance(name: string, make: () => UsageSubjectUnderTest | Promise<UsageSubjectUnderTest>): void {
  describeSuite(`usage port: ${name}`, () => {
    let subject: UsageSubjectUnderTest;
    let closing: (() => Promise<void>)[];
    const open = async () => {
      const opened = await openAdapter(subject.adapter(), subject.others());
      let isClosed = false;
      const close = async () => {
        if (!isClosed) await opened.close();
        isClosed = true;
      };
      closing.push(close);
      return { usage: opened.port, close };
    };
    beforeEach(async () => {
      closing = [];
      subject = await make();
    });
    afterEach(async () => {
      for (const close of closing.toReversed()) await close();
      await subject.close?.();
    });
    const read = async (usage: ports.Usage, query: Partial<ports.UsageQuery> = {}) =>
      (await usage.read({ since: 0, until: subject.now() + DAY_MS, ...query })).groups;

    it("counts a call as unknown from before it is sent until its usage is reported", async () => {
      const { usage } = await open();
      const other = await open();
      const call = await usage.begin(agent(), alive);
      expect((await read(other.usage))[0]?.sums).toMatchObject({ calls: 1, unknown: 1, inputTokens: 0 });
      call.end({ inputTokens: 30, cachedInputTokens: 20, cacheWriteTokens: 4, outputTokens: 5 });
      expect((await read(usage))[0]?.sums).toMatchObject({
        ...{ calls: 1, unknown: 0, refused: 0 },
        ...{ inputTokens: 30, cachedInputTokens: 20, cacheWriteTokens: 4, outputTokens: 5 },
      });
    });

    it("says what a call cost, once, and nothing of a call whose usage or price is not known", async () => {
      const { usage } = await open();
      const end = (model: string, ended: ports.UsageEnd) => usage.note({ ...agent(), model }).end(ended);
      const { cost, currency } = end("priced", used(1_000_000, 500_000))!;
      expect([cost, typeof currency]).toEqual([7, "string"]);
      expect(end("unpriced", used(1, 1))).toBeUndefined();
      expect(end("priced", { inputTokens: 1 })).toBeUndefined();
      expect(end("priced", { isRefused: true })).toBeUndefined();
      const call = await usage.begin({ ...agent(), model: "priced" }, alive);
      expect([call.end(used(1_000_000, 0))?.cost, call.end(used(1_000_000, 0))]).toEqual([2, undefined]);
    });

    it("keeps a call unknown that reports no usage or half of it, and counts refused calls apart", async () => {
      const { usage } = await open();
      (await usage.begin(agent(), alive)).end({});
      (await usage.begin(agent(), alive)).end({ inputTokens: 7 });
      (await usage.begin(agent(), alive)).end({ isRefused: true });
      expect((await read(usage))[0]?.sums).toMatchObject({ calls: 3, unknown: 2, refused: 1, inputTokens: 7, outputTokens: 0 });
    });

    it("counts the end of a call once, and counts that are no whole numbers from 0 up as nothing", async () => {
      const { usage } = await open();
      const call = await usage.begin(agent(), alive);
      call.end(used(3, 4));
      call.end(used(30, 40));
      (await usage.begin(agent(), alive)).end({ inputTokens: Number.NaN, outputTokens: -1 });
      expect((await read(usage))[0]?.sums).toMatchObject({ calls: 2, inputTokens: 3, outputTokens: 4 });
    });

    it("stores noted calls within a second, and what is left when it closes", async () => {
      const { usage, close } = await open();
      const other = await open();
      usage.note(agent()).end(used(1, 2));
      await subject.pass(1000);
      await expect.poll(async () => (await read(other.usage))[0]?.sums.calls, { timeout: 30_000 }).toBe(1);
      usage.note(agent()).end(used(1, 2));
      await close();
      expect((await read(other.usage))[0]?.sums).toMatchObject({ calls: 2, inputTokens: 2, outputTokens: 4 });
    });

    it("adds what several processes count at once", async () => {
      const all = await Promise.all([open(), open(), open()]);
      await Promise.all(
        Array.from({ length: 60 }, async (_, at) => {
          const call = await all[at % 3]!.usage.begin(agent({ model: `m${at % 2}` }), alive);
          call.end(used(10, 1));
        }),
      );
      for (const { close } of all) await close();
      const { usage } = await open();
      const groups = await read(usage, { by: ["model"] });
      expect(groups.map(({ sums }) => [sums.calls, sums.unknown, sums.inputTokens, sums.outputTokens])).toEqual([
        [30, 0, 300, 30],
        [30, 0, 300, 30],
      ]);
    });

    it("sums by time, by fields, and of chosen calls", async () => {
      const { usage } = await open();
      const start = subject.now();
      for (const [at, userId] of ["ada", "bob", "ada"].entries()) {
        usage.note(agent({ userId })).end(used(10 ** at, 0));
        await subject.pass(at === 0 ? MINUTE_MS : HOUR_MS);
      }
      usage.note({ source: "proxy", provider: "main", model: "m", tokenId: "tok_1" }).end(used(5, 0));
      const table = async (query: Partial<ports.UsageQuery>) =>
        (await read(usage, query)).map(({ at, subject: of, sums }) => [at - start, of, sums.inputTokens]);
      expect(await table({ step: "hour" })).toEqual([
        [0, {}, 11],
        [HOUR_MS, {}, 100],
        [2 * HOUR_MS, {}, 5],
      ]);
      expect(await table({ step: "minute", where: { userId: "bob" } })).toEqual([[MINUTE_MS, {}, 10]]);
      expect(await table({ step: "day", by: ["userId"] })).toEqual([
        [0, { userId: "ada" }, 101],
        [0, { userId: "bob" }, 10],
        [0, {}, 5],
      ]);
      expect(await table({ step: "hour", where: { source: "proxy", tokenId: "tok_1" }, by: ["tokenId"] })).toEqual([
        [2 * HOUR_MS, { tokenId: "tok_1" }, 5],
      ]);
      expect(await table({ step: "hour", since: start + HOUR_MS, until: start + 2 * HOUR_MS })).toEqual([[HOUR_MS, {}, 100]]);
    });

    it("counts a call in the minute in which it began", async () => {
      const { usage } = await open();
      const start = subject.now();
      const call = await usage.begin(agent(), alive);
      await subject.pass(3 * MINUTE_MS);
      call.end(used(1, 1));
      expect((await read(usage, { step: "minute" })).map(({ at, sums }) => [at, sums.outputTokens])).toEqual([[start, 1]]);
    });

    it("calculates costs only for models with a price, and counts the calls without a price", async () => {
      const { usage } = await open();
      usage.note(agent({ model: "priced" })).end({ inputTokens: 1_000_000, outputTokens: 500_000 });
      usage.note(agent({ model: "free?" })).end(used(1, 1));
      usage.note(agent({ model: "free?" })).end({ isRefused: true });
      const [priced, other] = await read(usage, { by: ["model"] });
      expect([priced?.sums.cost, priced?.sums.unpriced]).toEqual([7, 0]);
      expect([other?.sums.cost, other?.sums.unpriced]).toEqual([0, 2]);
    });

    it("keeps minutes for 25 hours, and hours for 400 days", async () => {
      const { usage } = await open();
      usage.note(agent()).end(used(1, 1));
      await subject.pass(24 * HOUR_MS);
      expect(await read(usage, { step: "minute" })).toHaveLength(1);
      await subject.pass(3 * HOUR_MS);
      await expect.poll(() => read(usage, { step: "minute" }), { timeout: 30_000 }).toEqual([]);
      expect(await read(usage, { step: "hour" })).toHaveLength(1);
    });

    it("has the calls of the current day, of every process, and begins again with the next day", async () => {
      const { usage } = await open();
      const other = await open();
      const start = subject.now();
      other.usage.note(agent()).end(used(10, 0));
      await other.close();
      usage.note(agent()).end(used(1, 0));
      const sum = async () => {
        const { since, until, groups } = await usage.today();
        return [since - start, until - start, groups.reduce((all, { sums }) => all + sums.inputTokens, 0)];
      };
      expect(await sum()).toEqual([0, DAY_MS, 11]);
      usage.note(agent()).end(used(1, 0));
      expect(await sum()).toEqual([0, DAY_MS, 12]);
      await subject.pass(DAY_MS);
      expect(await sum()).toEqual([DAY_MS, 2 * DAY_MS, 0]);
    });

    it("bounds the subjects of a time, because callers name models", async () => {
      const { usage } = await open();
      for (let at = 0; at < 3000; at++) usage.note(agent({ model: `invented-${at}` })).end(used(1, 0));
      const groups = await read(usage, { by: ["model"] });
      expect(groups.length).toBeLessThan(1500);
      expect(groups.reduce((all, { sums }) => all + sums.inputTokens, 0)).toBe(3000);
    });

    const series = async (usage: ports.Usage, query: Partial<ports.UsageSeriesQuery> = {}) =>
      usage.series({ since: subject.now(), until: subject.now() + 1, step: "hour", top: 10, ...query });

    it("shows calls over time in steps, also in those without calls", async () => {
      const { usage } = await open();
      const start = subject.now();
      usage.note(agent()).end(used(1, 2));
      await subject.pass(2 * HOUR_MS);
      usage.note(agent()).end(used(3, 4));
      usage.note(agent()).end(used(5, 6));
      const { steps, series: found } = await series(usage, { since: start + 1, until: subject.now() + HOUR_MS });
      expect(steps.map((at) => at - start)).toEqual([0, HOUR_MS, 2 * HOUR_MS]);
      expect(found.map(({ value, isRest }) => [value, isRest])).toEqual([[undefined, false]]);
      expect(found[0]?.points.map(({ sums }) => [sums.calls, sums.inputTokens])).toEqual([
        [1, 1],
        [0, 0],
        [2, 8],
      ]);
      const byMinute = await series(usage, { since: start, until: start + 3 * MINUTE_MS, step: "minute" });
      expect(byMinute.series[0]?.points.map(({ sums }) => sums.calls)).toEqual([1, 0, 0]);
      const byDay = await series(usage, { since: start, until: start + DAY_MS + 1, step: "day" });
      expect([byDay.steps.map((at) => at - start), byDay.series[0]?.points.map(({ sums }) => sums.calls)]).toEqual([
        [0, DAY_MS],
        [3, 0],
      ]);
    });

    it("adds the latencies of several processes, also of those that have ended, with an error of at most 19 %", async () => {
      const [one, two] = [await open(), await open()];
      for (let ms = 1; ms <= 1000; ms++) {
        const of = ms % 2 === 0 ? one : two;
        of.usage.note(agent()).end({ ...used(1, 1), durationMs: ms * 10, firstTokenMs: ms });
      }
      await one.close();
      await two.close();
      const { usage } = await open();
      const { duration, firstToken, sums } = (await series(usage)).series[0]!.points[0]!;
      expect(sums.calls).toBe(1000);
      for (const [found, exact] of [
        [duration.p50, 5000],
        [duration.p95, 9500],
        [firstToken.p50, 500],
        [firstToken.p95, 950],
      ] as const)
        expect(Math.abs(found! / exact - 1)).toBeLessThan(0.19);
    });

    it("has no latency of calls that failed or told none, and takes only durations for durations", async () => {
      const { usage } = await open();
      usage.note(agent()).end({ isFailed: true, durationMs: 10 });
      usage.note(agent()).end({ isRefused: true, durationMs: 10 });
      usage.note(agent()).end(used(1, 1));
      for (const durationMs of [Number.NaN, -1, Infinity]) usage.note(agent()).end({ ...used(1, 1), durationMs });
      const none = { p50: undefined, p95: undefined };
      const [point] = (await series(usage)).series[0]!.points;
      expect([point?.duration, point?.firstToken]).toEqual([none, none]);
      usage.note(agent()).end({ ...used(1, 1), durationMs: Number.MAX_VALUE });
      const [later] = (await series(usage)).series[0]!.points;
      expect(later?.duration.p50).toBeGreaterThan(60 * MINUTE_MS);
    });

    it("counts refused and other failed calls as failed", async () => {
      const { usage } = await open();
      usage.note(agent()).end({ isRefused: true });
      usage.note(agent()).end({ isFailed: true });
      usage.note(agent()).end(used(1, 1));
      usage.note(agent());
      expect((await read(usage))[0]?.sums).toMatchObject({ calls: 4, refused: 1, failed: 2, unknown: 2 });
      expect((await series(usage)).series[0]?.points[0]?.sums).toMatchObject({ calls: 4, refused: 1, failed: 2 });
    });

    it("gives the values with the most calls a series, and the rest one together", async () => {
      const { usage } = await open();
      for (let user = 1; user <= 6; user++)
        for (let call = 0; call < user; call++) usage.note(agent({ userId: `u${user}` })).end(used(1, 0));
      usage.note({ source: "proxy", provider: "main", model: "m", tokenId: "tok_1" }).end(used(1, 0));
      const found = async (query: Partial<ports.UsageSeriesQuery>) =>
        (await series(usage, query)).series.map(({ value, isRest, points }) => [value, isRest, points[0]?.sums.calls]);
      expect(await found({ by: "userId", top: 2 })).toEqual([
        ["u6", false, 6],
        ["u5", false, 5],
        [undefined, true, 11],
      ]);
      expect(await found({ by: "tokenId", top: 2 })).toEqual([
        [undefined, false, 21],
        ["tok_1", false, 1],
      ]);
    });

    it("gives the values with the most cost a series where the query says so, and without costs those with the most tokens", async () => {
      const { usage } = await open();
      for (let call = 0; call < 3; call++) usage.note(agent({ userId: "frequent" })).end(used(1, 0));
      usage.note(agent({ userId: "large" })).end(used(100, 0));
      usage.note(agent({ userId: "dear", model: "priced" })).end(used(2, 0));
      const found = async (query: Partial<ports.UsageSeriesQuery>) =>
        (await series(usage, { by: "userId", ...query })).series.map(({ value }) => value);
      expect(await found({ order: "cost" })).toEqual(["dear", "large", "frequent"]);
      expect(await found({ order: "cost", top: 1 })).toEqual(["dear", undefined]);
      expect((await found({}))[0]).toBe("frequent");
    });

    it("shows days of several weeks, with what every process counted", async () => {
      const [one, two] = [await open(), await open()];
      const start = subject.now();
      for (let day = 0; day < 30; day++) {
        one.usage.note(agent()).end(used(day, 0));
        two.usage.note(agent()).end({ ...used(100, 0), durationMs: 50 });
        await series(one.usage);
        await series(two.usage);
        await subject.pass(DAY_MS);
      }
      const { steps, series: found } = await series(one.usage, { since: start, until: start + 30 * DAY_MS, step: "day" });
      expect(steps.map((at) => (at - start) / DAY_MS)).toEqual(Array.from({ length: 30 }, (_, day) => day));
      const points = found[0]!.points;
      expect(points.map(({ sums }) => sums.inputTokens)).toEqual(Array.from({ length: 30 }, (_, day) => 100 + day));
      expect(points.every(({ duration }) => duration.p50! > 40)).toBe(true);
    });

    it("keeps series by minute for 25 hours and by hour for longer", async () => {
      const { usage } = await open();
      const start = subject.now();
      usage.note(agent()).end({ ...used(1, 1), durationMs: 5 });
      const within = { since: start, until: start + MINUTE_MS };
      await subject.pass(24 * HOUR_MS);
      expect((await series(usage, { ...within, step: "minute" })).series).toHaveLength(1);
      await subject.pass(3 * HOUR_MS);
      await expect.poll(async () => (await series(usage, { ...within, step: "minute" })).series, { timeout: 30_000 }).toEqual([]);
      const kept = (await series(usage, { ...within, step: "day" })).series[0]?.points[0];
      expect([kept?.sums.calls, kept?.duration.p50 !== undefined]).toEqual([1, true]);
    });

    it("bounds the steps and the series of an answer", async () => {
      const { usage } = await open();
      for (let at = 0; at < 3000; at++) usage.note(agent({ model: `invented-${at}` })).end(used(1, 0));
      const { series: found } = await series(usage, { by: "model", top: 5 });
      expect(found).toHaveLength(6);
      expect(found.reduce((sum, { points }) => sum + points[0]!.sums.calls, 0)).toBe(3000);
      const until = subject.now() + 2001 * MINUTE_MS;
      await expect(series(usage, { until, step: "minute" })).rejects.toThrow(expect.objectContaining({ name: "UsageTooWide" }));
      await expect(series(usage, { since: Number.NaN })).rejects.toThrow(RangeError);
      expect(await series(usage, { until: subject.now() })).toMatchObject({ steps: [], series: [] });
    });

    it("gives series only the calls with the wanted values", async () => {
      const { usage } = await open();
      usage.note(agent({ userId: "ada", model: "x" })).end(used(1, 0));
      usage.note(agent({ userId: "bob", model: "x" })).end(used(1, 0));
      usage.note(agent({ userId: "bob", model: "y" })).end(used(1, 0));
      const found = async (query: Partial<ports.UsageSeriesQuery>) =>
        (await series(usage, query)).series.map(({ value, points }) => [value, points[0]?.sums.calls]);
      expect(await found({ by: "userId", where: { model: "y" } })).toEqual([["bob", 1]]);
      expect(await found({ where: { model: "x", userId: "bob" } })).toEqual([[undefined, 1]]);
      expect(await found({ where: { model: "z" } })).toEqual([]);
      expect(await found({ where: { model: undefined } })).toEqual([[undefined, 3]]);
    });

    const work = async (usage: ports.Usage, query: Partial<ports.EndedWorkQuery> = {}) =>
      usage.work({ since: subject.now(), until: subject.now() + 1, step: "hour", top: 10, ...query });
    const outcomesOf = ({ series: found }: ports.EndedWorkReport) =>
      found.map(({ value, points }) => [
        value,
        points.map(({ counts }) => Object.values(counts).reduce((sum, each) => sum + each)),
      ]);

    it("counts ended work by kind or by name, by how it ended, with durations of completed work", async () => {
      const { usage } = await open();
      usage.ended({ kind: "turn", name: "helper", outcome: "completed", durationMs: 100 });
      usage.ended({ kind: "turn", name: "helper", outcome: "failed", durationMs: 9_000_000 });
      usage.ended({ kind: "turn", name: "other", outcome: "cancelled" });
      usage.ended({ kind: "run", name: "helper", outcome: "interrupted", durationMs: Number.NaN });
      const found = await work(usage);
      expect(found.series.map(({ value, isRest, points }) => [value, isRest, points[0]?.counts])).toEqual([
        ["turn", false, { completed: 1, failed: 1, cancelled: 1, interrupted: 0 }],
        ["run", false, { completed: 0, failed: 0, cancelled: 0, interrupted: 1 }],
      ]);
      expect(Math.abs(found.series[0]!.points[0]!.duration.p95! / 100 - 1)).toBeLessThan(0.19);
      expect(found.series[1]?.points[0]?.duration).toEqual({ p50: undefined, p95: undefined });
      expect(outcomesOf(await work(usage, { kind: "turn" }))).toEqual([
        ["helper", [2]],
        ["other", [1]],
      ]);
      expect((await work(usage, { kind: "webhook" })).series).toEqual([]);
    });

    it("adds ended work of several processes, also of those that have ended, in the minute, hour and day of its end", async () => {
      const start = subject.now();
      const [one, two] = [await open(), await open()];
      one.usage.ended({ kind: "turn", name: "helper", outcome: "completed" });
      two.usage.ended({ kind: "turn", name: "helper", outcome: "failed" });
      await two.close();
      await subject.pass(2 * HOUR_MS);
      one.usage.ended({ kind: "turn", name: "helper", outcome: "completed" });
      await one.close();
      const { usage } = await open();
      const over = async (step: "minute" | "hour" | "day", ms: number) =>
        outcomesOf(await work(usage, { since: start, until: start + ms, step }));
      expect(await over("minute", 2 * MINUTE_MS)).toEqual([["turn", [2, 0]]]);
      expect(await over("hour", 3 * HOUR_MS)).toEqual([["turn", [2, 0, 1]]]);
      expect(await over("day", DAY_MS + 1)).toEqual([["turn", [3, 0]]]);
    });

    it("stores ended work within ten seconds, without a read of its process", async () => {
      const [one, other] = [await open(), await open()];
      one.usage.ended({ kind: "request", name: "probes", outcome: "completed" });
      await subject.pass(10_000);
      await expect.poll(async () => outcomesOf(await work(other.usage)), { timeout: 30_000 }).toEqual([["request", [1]]]);
    });

    it("removes ended work of minutes after 25 hours, and keeps that of its day", async () => {
      const { usage } = await open();
      const start = subject.now();
      usage.ended({ kind: "run", name: "w", outcome: "completed" });
      const within = { since: start, until: start + MINUTE_MS };
      expect((await work(usage, { ...within, step: "minute" })).series).toHaveLength(1);
      await subject.pass(27 * HOUR_MS);
      await expect.poll(async () => (await work(usage, { ...within, step: "minute" })).series, { timeout: 30_000 }).toEqual([]);
      expect(outcomesOf(await work(usage, { ...within, step: "day" }))).toEqual([["run", [1]]]);
    });

    it("bounds the names and the steps of ended work", async () => {
      const { usage } = await open();
      for (let at = 0; at < 1500; at++) usage.ended({ kind: "turn", name: `agent-${at}`, outcome: "completed" });
      for (const name of ["", "\0", "\ud800", "x".repeat(10_000)]) usage.ended({ kind: "turn", name, outcome: "completed" });
      const { series: found } = await work(usage, { kind: "turn", top: 5 });
      expect(found.map(({ isRest }) => isRest)).toEqual([false, false, false, false, false, true]);
      expect(found.reduce((sum, { points }) => sum + points[0]!.counts.completed, 0)).toBe(1504);
      const until = subject.now() + 2001 * MINUTE_MS;
      await expect(work(usage, { until, step: "minute" })).rejects.toThrow(expect.objectContaining({ name: "UsageTooWide" }));
      await expect(work(usage, { since: Number.NaN })).rejects.toThrow(RangeError);
      expect(await work(usage, { until: subject.now() })).toMatchObject({ steps: [], series: [] });
    });

    it("takes any text as a name", async () => {
      const { usage } = await open();
      for (const model of ["", "\0", "\ud800", "x".repeat(10_000)]) (await usage.begin(agent({ model }), alive)).end(used(1, 0));
      expect((await read(usage, { by: ["model"] })).every(({ subject: { model } }) => model!.length < 1000)).toBe(true);
    });
  });
}
