import { parseJson } from "@portico/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const LARGEST = 2n ** 53n - 1n;
const whole = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n });
/** JSON texts, and the value that they have. */
const written = fc.letrec<{ any: readonly [string, unknown] }>((tie) => ({
  any: fc.oneof(
    { depthSize: "small" },
    whole.map((number) => [String(number), number > LARGEST || number < -LARGEST ? String(number) : Number(number)] as const),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => {
      const text = Number.isInteger(number) ? number.toExponential() : String(number);
      return [text, JSON.parse(text) as unknown] as const;
    }),
    fc.oneof(fc.string(), fc.string({ unit: fc.constantFrom("\\", '"', "1234567890123456789", "a", ",", ":") })).map((text) => {
      return [JSON.stringify(text), text] as const;
    }),
    fc.constantFrom(["true", true] as const, ["null", null] as const),
    fc
      .array(tie("any"), { maxLength: 4 })
      .map((each) => [`[${each.map(([text]) => text).join(" , ")}]`, each.map(([, value]) => value)] as const),
    fc.dictionary(fc.string(), tie("any"), { maxKeys: 4, noNullPrototype: true }).map((each) => {
      const entries = Object.entries(each);
      const text = `{${entries.map(([key, [value]]) => `${JSON.stringify(key)}:${value}`).join(",")}}`;
      return [text, Object.fromEntries(entries.map(([key, [, value]]) => [key, value]))] as const;
    }),
  ),
})).any;

describe("JSON of others", () => {
  it("has its whole numbers beyond 2^53 - 1 as texts, and everything else as JSON.parse reads it", () => {
    fc.assert(
      fc.property(written, ([text, value]) => {
        expect(parseJson(text)).toEqual(value);
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ["9007199254740991", 9_007_199_254_740_991],
    ["9007199254740992", "9007199254740992"],
    ["-9007199254740993", "-9007199254740993"],
    ["1.2345678901234567890123", 1.2345678901234567],
    ["12345678901234567890.0", 12345678901234567000],
    ["12345678901234567890e2", 1234567890123456800000],
    ['"12345678901234567890"', "12345678901234567890"],
    ['{"a\\\\":12345678901234567890}', { "a\\": "12345678901234567890" }],
    ['{"__proto__":12345678901234567890}', JSON.parse('{"__proto__":"12345678901234567890"}')],
  ])("%s", (text, value) => {
    expect(JSON.stringify(parseJson(text))).toBe(JSON.stringify(value));
  });

  it.each(["", "{", "[1234567890123456789", "01234567890123456789", "1234567890123456789 1"])(
    "that is invalid is a SyntaxError: %j",
    (text) => {
      expect(() => parseJson(text)).toThrow(SyntaxError);
    },
  );

  it("is read in linear time", () => {
    const hostile = [
      `"${"\\\\".repeat(1_000_000)}"`,
      `[${"1".repeat(2_000_000)}]`,
      `[${'"1234567890123456",'.repeat(100_000)}1]`,
    ];
    for (const text of hostile) expect(parseJson(text)).toBeDefined();
  });
});
