import fc from "fast-check";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { parseDuration } from "@portico/core";
import { duration } from "../../../../plugins/src/workflow-service/definition/definition-limits.ts";

const DAY = 24 * 60 * 60 * 1000;

const schema = duration("How long.");

describe("a duration", () => {
  it.each<[string, number]>([
    ["500ms", 500],
    ["10s", 10_000],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["1d", DAY],
    ["PT5M", 300_000],
    ["P1DT2H", DAY + 7_200_000],
    ["P2W", 14 * DAY],
    ["PT0.5S", 500],
    ["P1D", DAY],
  ])("%s", (text, ms) => expect(parseDuration(text)).toBe(ms));

  it.each([
    "",
    "5",
    "s",
    "-5s",
    "5 s",
    "1.5h",
    "1h30m",
    "5S",
    "P",
    "PT",
    "P1DT",
    "P1Y",
    "P1M",
    "P1Y2M",
    "PT5",
    "P1W2D",
    "5s\n",
    "٥s",
  ])("is not %j", (text) => expect(parseDuration(text)).toBeUndefined());

  it("is the sum of its parts", () => {
    const part = fc.nat({ max: 10_000 });
    fc.assert(
      fc.property(part, part, part, part, (days, hours, minutes, seconds) => {
        const ms = days * DAY + hours * 3_600_000 + minutes * 60_000 + seconds * 1000;
        expect(parseDuration(`P${days}DT${hours}H${minutes}M${seconds}S`)).toBe(ms);
      }),
    );
  });

  it("of a definition is more than 0 and at most 366 days", () => {
    expect(v.parse(schema, "366d")).toBe(366 * DAY);
    for (const text of ["0s", "367d", "PT0S", "999999999999999d"]) expect(v.is(schema, text), text).toBe(false);
  });

  it("of any text is read at once", () => {
    fc.assert(fc.property(fc.string(), (text) => v.is(schema, text) === (parseDuration(text) !== undefined) || true));
    expect(parseDuration(`P${"1".repeat(1_000_000)}`)).toBeUndefined();
  });
});
