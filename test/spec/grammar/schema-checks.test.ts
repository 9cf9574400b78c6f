import { createSystemClock } from "@portico/core";
import { type SchemaCheckOptions, SchemaChecks } from "@portico/core/kit";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { turnsDuring } from "../../harness/turns-during.ts";

type Schema = Readonly<Record<string, unknown>>;

const checks = new SchemaChecks(createSystemClock());
afterAll(() => checks.close());
const check = (schema: Schema, value: unknown, options: SchemaCheckOptions = {}) => checks.check(schema, value, options);
const isGood = async (schema: Schema, value: unknown, options: SchemaCheckOptions = {}) =>
  "value" in (await check(schema, value, options));

const nested = (levels: number): unknown => (levels === 0 ? 1 : { next: nested(levels - 1) });
const TOO_LONG = { faults: [{ at: "", message: "takes more than 1 s of processor time to be checked against the schema" }] };

describe("a check by a JSON Schema from outside, of a value from outside", () => {
  const letters = "a".repeat(27) + "!";
  it.each<[string, Schema, unknown, boolean]>([
    ["pattern", { properties: { a: { pattern: "^(a+)+$" } } }, { a: letters }, false],
    ["patternProperties", { patternProperties: { "^(a+)+$": false } }, { [letters]: 1 }, true],
    ["propertyNames", { propertyNames: { pattern: "^(a+)+$" } }, { [letters]: 1 }, false],
    ["a pattern of quadratic time", { properties: { a: { pattern: "a*b$" } } }, { a: "a".repeat(250_000) }, false],
    ["uniqueItems", { uniqueItems: true }, Array.from({ length: 20_000 }, (_, at) => ({ at })), true],
  ])("takes time in proportion to the value: %s", async (_what, schema, value, expected) => {
    expect(await isGood(schema, value)).toBe(expected);
  });

  it.each<[string, Schema, unknown]>([
    [
      "references that double at each step",
      {
        $ref: "#/$defs/d0",
        $defs: Object.fromEntries([
          ...Array.from({ length: 30 }, (_, at) => [`d${at}`, { allOf: [1, 2].map(() => ({ $ref: `#/$defs/d${at + 1}` })) }]),
          ["d30", { minimum: 1 }],
        ]),
      },
      5,
    ],
    [
      "a choice that refers to itself",
      {
        $ref: "#/$defs/node",
        $defs: {
          node: {
            anyOf: [1, 2].map((at) => ({
              allOf: [{ properties: { next: { $ref: "#/$defs/node" } } }, { required: [`no${at}`] }],
            })),
          },
        },
      },
      nested(60),
    ],
  ])("is ended after its time, and the event loop goes on meanwhile: %s", async (_what, schema, value) => {
    const { turns, outcome } = await turnsDuring(() => check(schema, value));
    expect(turns).toBeGreaterThan(1);
    expect(outcome).toEqual(TOO_LONG);
    // The next check is not affected.
    expect(await isGood({ $ref: "#/$defs/a", $defs: { a: { type: "string" } } }, "x")).toBe(true);
  });

  it("ends for a schema that refers to itself without end", async () => {
    expect(await check({ $ref: "#" }, 1)).toEqual(TOO_LONG);
  });

  it("does not begin, or ends, with its signal", async () => {
    const stopping = new AbortController();
    const schema = { properties: { next: { allOf: [{ $ref: "#" }, { $ref: "#" }] } } };
    const checking = check(schema, nested(100), { signal: stopping.signal }).catch((error: unknown) => error);
    stopping.abort(new Error("gone"));
    expect(await checking).toMatchObject({ message: "gone" });
    await expect(check(schema, nested(100), { signal: stopping.signal })).rejects.toThrow("gone");
  });

  it("says where a value violates the schema, and never quotes the value", async () => {
    const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["b"] };
    expect(await check(schema, { a: "hidden-word" }, { allFaults: true })).toEqual({
      faults: [
        { at: "", member: "b", message: "must have required property 'b'" },
        { at: "/a", member: undefined, message: "must be integer" },
      ],
    });
  });

  it("fills the defaults of a schema into a copy, here and in the thread", async () => {
    for (const schema of [
      { properties: { a: { default: 7 } } },
      { properties: { a: { $ref: "#/$defs/a", default: 7 } }, $defs: { a: {} } },
    ]) {
      const value = {};
      expect(await check(schema, value, { fillsDefaults: true })).toEqual({ value: { a: 7 }, unchecked: [] });
      expect(value).toEqual({});
    }
  });

  it.each<[string, Schema]>([
    ["too many levels", JSON.parse(`${'{"not":'.repeat(5000)}{}${"}".repeat(5000)}`) as Schema],
    ["too many values", { enum: Array.from({ length: 30_000 }, (_, at) => at) }],
    ["a type that does not exist", { type: "no-such-type" }],
    ["a reference elsewhere", { $ref: "https://example.com/schema" }],
    ["a result that is a promise", { $async: true }],
    ["a pattern that RE2 lacks", { pattern: "^(?!no)" }],
  ])("refuses a schema with %s", async (_what, schema) => {
    expect(await check(schema, "x")).toEqual({ unusable: expect.any(String) as string });
    expect(await checks.inspect(schema)).toEqual({ unusable: expect.any(String) as string });
  });

  it("finds equal elements as JSON does, whatever the order of their members (a reference of its own)", async () => {
    const element = fc.oneof(fc.constantFrom(1, "1", true, null, [], {}), fc.dictionary(fc.constantFrom("a", "b"), fc.nat(1)));
    await fc.assert(
      fc.asyncProperty(fc.array(element, { maxLength: 6 }), async (list) => {
        const isEqual = (one: unknown, other: unknown): boolean => {
          try {
            expect(one).toEqual(other);
            return true;
          } catch {
            return false;
          }
        };
        const isUnique = list.every((one, at) => list.slice(at + 1).every((other) => !isEqual(one, other)));
        expect(await isGood({ uniqueItems: true }, list)).toBe(isUnique);
      }),
      { numRuns: 100 },
    );
  });
});

describe("patterns", () => {
  it.each([
    ["of JavaScript without the flag u", "^[\\w\\-\\_]+\\@$", "a_b@", "a b"],
    ["with characters as code units", "^[\\u00e0-\\u00ff]+$", "é", "e"],
    ["with a named group", "^(?<year>\\d{4})$", "2030", "30"],
    ["with any character", "^[^]$", "\n", ""],
  ])("%s are understood", async (_what, pattern, good, bad) => {
    expect([await isGood({ pattern }, good), await isGood({ pattern }, bad)]).toEqual([true, false]);
  });

  const foreign = { isForeign: true };
  it.each<[string, Schema, unknown]>([
    ["pattern", { properties: { a: { pattern: "^(?!x)" } } }, { a: "x" }],
    ["a negation", { properties: { a: { not: { pattern: "^(?!x)" } } } }, { a: "y" }],
    ["one of several", { oneOf: [{ pattern: "^(?!x)" }, { type: "string" }] }, "y"],
    ["names", { patternProperties: { "^(?!x)": { type: "string" } }, additionalProperties: false }, { y: 1 }],
    ["names of members", { propertyNames: { pattern: "(?<=x)" } }, { y: 1 }],
  ])("that RE2 lacks are left to the author of a foreign schema, and named: %s", async (_what, schema, value) => {
    const result = await check(schema, value, foreign);
    expect(result).toMatchObject({ value, unchecked: [expect.stringContaining("(?")] });
    expect(await checks.inspect(schema, foreign)).toMatchObject({ unchecked: [expect.stringContaining("(?")] });
  });

  it("of the same schema that RE2 has are checked nevertheless, and properties may be called like keywords", async () => {
    const schema = { properties: { pattern: { pattern: "^(?!x)" }, not: { pattern: "^b$" } }, required: ["pattern"] };
    expect(await isGood(schema, { pattern: "x", not: "b" }, foreign)).toBe(true);
    expect(await isGood(schema, { pattern: "x", not: "c" }, foreign)).toBe(false);
    expect(await isGood(schema, { not: "b" }, foreign)).toBe(false);
  });
});
