import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallQueue, type Release } from "../../../adapters/src/models/http/call-queue.ts";
import { KeyPool } from "../../../adapters/src/models/http/key-pool.ts";
import { retryAfterOf } from "../../../adapters/src/models/http/retry-after.ts";
import { propertyRuns } from "../../harness/property-runs.ts";

const check = <T>(arbitrary: fc.Arbitrary<T>, property: (value: T) => void | Promise<void>) =>
  fc.assert(
    fc.asyncProperty(arbitrary, async (value) => property(value)),
    { numRuns: propertyRuns(500) },
  );

describe("the queue of calls", () => {
  it("never exceeds its limits, keeps the order, and loses no place, for every order of arrivals, ends and aborts", async () => {
    const step = fc.oneof(
      fc.constant({ kind: "arrive" as const }),
      fc.record({ kind: fc.constant("end" as const), at: fc.nat(20) }),
      fc.record({ kind: fc.constant("abort" as const), at: fc.nat(20) }),
    );
    await check(
      fc.record({ limit: fc.integer({ min: 1, max: 3 }), most: fc.nat(4), steps: fc.array(step, { maxLength: 40 }) }),
      async ({ limit, most, steps }) => {
        const queue = new CallQueue(limit, most);
        const running: { number: number; release: Release }[] = [];
        const entered: number[] = [];
        let waiting: { number: number; caller: AbortController; end: Promise<void> }[] = [];
        const begin = (number: number, release: Release) => {
          running.push({ number, release });
          entered.push(number);
        };
        for (const [number, each] of steps.entries()) {
          if (each.kind === "arrive") {
            const release = queue.tryEnter();
            if (release) begin(number, release);
            else {
              const caller = new AbortController();
              const place = queue.wait(caller.signal);
              expect(place === undefined, "full exactly at its bound").toBe(waiting.length >= most);
              if (place) waiting.push({ number, caller, end: place.then((given) => begin(number, given)).catch(() => {}) });
            }
          } else if (each.kind === "end" && running.length > 0) {
            const [ended] = running.splice(each.at % running.length, 1);
            ended!.release();
            ended!.release();
          } else if (each.kind === "abort" && waiting.length > 0) {
            const [left] = waiting.splice(each.at % waiting.length, 1);
            left!.caller.abort();
            await left!.end;
          }
          // Each promise that was settled has run its reactions.
          for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
          waiting = waiting.filter((each) => !entered.includes(each.number));
          expect(queue.running).toBe(running.length);
          expect(queue.waiting).toBe(waiting.length);
          expect(running.length).toBeLessThanOrEqual(limit);
          expect(waiting.length === 0 || running.length === limit, "no call waits beside a free place").toBe(true);
        }
        expect(entered, "in the order of arrival").toEqual(entered.toSorted((a, b) => a - b));
      },
    );
  });
});

describe("the pool of keys", () => {
  it("does not make a rest shorter", () => {
    const pool = new KeyPool(["one"]);
    pool.rest("one", 100, "limited");
    pool.rest("one", 50, "limited");
    expect([pool.next(99), pool.next(100)?.value]).toEqual([undefined, "one"]);
  });

  it("gives a key that rests to no call, gives each awake key its turn, and never makes a rest shorter", async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("take" as const) }),
      fc.record({ kind: fc.constant("pass" as const), ms: fc.nat(50) }),
      fc.record({
        kind: fc.constant("rest" as const),
        key: fc.nat(4),
        ms: fc.integer({ min: 1, max: 80 }),
        reason: fc.constantFrom("refused" as const, "limited" as const),
      }),
      fc.record({ kind: fc.constant("replace" as const), keys: fc.uniqueArray(fc.nat(6), { minLength: 1, maxLength: 5 }) }),
    );
    await check(fc.array(step, { maxLength: 60 }), (steps) => {
      let keys = ["0", "1", "2", "3"];
      let now = 1_000;
      const pool = new KeyPool(keys);
      const rests = new Map<string, number>();
      for (const each of steps) {
        const awake = keys.filter((key) => (rests.get(key) ?? 0) <= now);
        if (each.kind === "take") {
          const taken = awake.map(() => pool.next(now)!.value);
          expect(taken.toSorted(), "each awake key once in a round").toEqual(awake.toSorted());
          if (awake.length === 0) expect(pool.next(now)).toBeUndefined();
          const { size, refused, limited } = pool.count(now);
          expect(size - refused - limited).toBe(awake.length);
          expect(pool.wakesAt > now).toBe(awake.length === 0);
        } else if (each.kind === "pass") now += each.ms;
        else if (each.kind === "rest") {
          const key = String(each.key);
          if (!keys.includes(key)) continue;
          pool.rest(key, now + each.ms, each.reason);
          rests.set(key, Math.max(rests.get(key) ?? 0, now + each.ms));
        } else {
          keys = each.keys.map(String);
          pool.replace(keys);
          for (const key of rests.keys()) if (!keys.includes(key)) rests.delete(key);
        }
      }
    });
  });
});

describe("the wait that an upstream asks for", () => {
  const now = Date.UTC(2030, 0, 1);

  it.each([
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after-ms": "1500", "retry-after": "9" }, 1_500],
    [{ "retry-after": new Date(now + 30_000).toUTCString() }, 30_000],
    [{ "retry-after": new Date(now - 30_000).toUTCString() }, 0],
    [{ "retry-after": "999999999" }, 24 * 60 * 60_000],
    [{ "retry-after": ["3", "8"] }, 3_000],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "" }, undefined],
    [{}, undefined],
  ])("of %j is %s ms", (headers, expected) => {
    expect(retryAfterOf(headers as never, now)).toBe(expected);
  });

  it("is never negative, never longer than a day, and never an error, for every text", async () => {
    await check(
      fc.record({ "retry-after": fc.string(), "retry-after-ms": fc.option(fc.string(), { nil: undefined }) }),
      (headers) => {
        const wait = retryAfterOf(headers as never, now) ?? 0;
        expect(wait).toBeGreaterThanOrEqual(0);
        expect(wait).toBeLessThanOrEqual(24 * 60 * 60_000);
      },
    );
  });
});
