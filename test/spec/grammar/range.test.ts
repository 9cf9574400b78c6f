import { readRange } from "@portico/core";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

describe("a Range of 1,000 bytes", () => {
  it.each([
    ["bytes=0-0", 0, 0],
    ["bytes=0-999", 0, 999],
    ["bytes=10-19", 10, 19],
    ["bytes=999-999", 999, 999],
    ["bytes=0-", 0, 999],
    ["bytes=999-", 999, 999],
    ["bytes=-1", 999, 999],
    ["bytes=-1000", 0, 999],
    ["bytes=007-08", 7, 8],
    ["Bytes=0-1", 0, 1],
    ["bytes= 0-1 ", 0, 1],
  ])("is one range: %s", (header, start, end) => {
    expect(readRange(header, 1_000)).toEqual({ start, end });
  });

  it.each([
    ["bytes=0-1000", 0],
    ["bytes=990-99999999999999999999999", 990],
    ["bytes=-1001", 0],
    ["bytes=-99999999999999999999999", 0],
  ])("ends with the last byte where it asks for more (open points 10): %s", (header, start) => {
    expect(readRange(header, 1_000)).toEqual({ start, end: 999 });
  });

  it.each([
    ["past the end", "bytes=1000-"],
    ["past the end", "bytes=1000-1001"],
    ["far past the end", "bytes=99999999999999999999999-"],
    ["turned round", "bytes=5-4"],
    ["turned round, past the end", "bytes=2000-1000"],
    ["turned round, beyond exact numbers", "bytes=999-0"],
    ["the last none", "bytes=-0"],
    ["two", "bytes=0-1,2-3"],
    ["two of which one is empty", "bytes=0-1,"],
    ["of other units", "items=0-1"],
    ["without units", "0-1"],
    ["without numbers", "bytes=-"],
    ["without a dash", "bytes=5"],
    ["empty", ""],
    ["units alone", "bytes="],
    ["negative", "bytes=--5"],
    ["negative at its end", "bytes=0--5"],
    ["of no whole numbers", "bytes=0.5-1"],
    ["of signed numbers", "bytes=+0-1"],
    ["of hexadecimal numbers", "bytes=0x0-0x1"],
    ["in other digits", "bytes=٠-١"],
    ["with something before", "xbytes=0-1"],
    ["with something behind", "bytes=0-1x"],
    ["with spaces in it", "bytes=0 - 1"],
    ["on two lines", "bytes=0-1\nbytes=0-1"],
  ])("cannot be satisfied (specification 4.5, rule 8): %s, %j", (_what, header) => {
    expect(readRange(header, 1_000)).toBe("unsatisfiable");
  });
});

it("no Range is the whole, also of nothing", () => {
  expect([readRange(undefined, 1_000), readRange(undefined, 0)]).toEqual(["whole", "whole"]);
});

it.each(["bytes=0-", "bytes=0-0", "bytes=-1", "bytes=-0", "bytes=1-"])("no range of nothing can be satisfied: %s", (header) => {
  expect(readRange(header, 0)).toBe("unsatisfiable");
});

it("a range is the part that its bytes have in the whole, counted one by one", () => {
  const number = fc.option(fc.nat({ max: 30 }), { nil: undefined });
  fc.assert(
    fc.property(number, number, fc.nat({ max: 20 }), (from, to, size) => {
      const range = readRange(`bytes=${from ?? ""}-${to ?? ""}`, size);
      const isIn = (index: number) => {
        if (from === undefined) return to !== undefined && index >= size - to;
        return index >= from && (to === undefined || (from <= to && index <= to));
      };
      const wanted = Array.from({ length: size }, (_, index) => index).filter(isIn);
      if (wanted.length === 0) expect(range).toBe("unsatisfiable");
      else expect(range).toEqual({ start: wanted[0], end: wanted.at(-1) });
    }),
    { numRuns: 2_000 },
  );
});

it("a range never exceeds its file, for any header", () => {
  const piece = fc.constantFrom("bytes", "=", "-", ",", " ", "0", "1", "5", "99999999999999999999", "items", "\t", "x");
  const header = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(header, fc.nat({ max: 10 }), (text, size) => {
      const range = readRange(text, size);
      expect(range).not.toBe("whole");
      if (typeof range === "string") return;
      expect(0 <= range.start && range.start <= range.end && range.end < size).toBe(true);
    }),
    { numRuns: 2_000 },
  );
});
