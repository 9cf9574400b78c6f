import { createSystemClock } from "@portico/core";
import { SchemaChecks } from "@portico/core/kit";
import { afterAll, describe, expect, it } from "vitest";
import { checkSchema as checkBy } from "../../../../plugins/src/workflow-service/definition/schema-check.ts";
import { load } from "./stand-in-nodes.ts";

type Schema = Readonly<Record<string, unknown>>;

const checks = new SchemaChecks(createSystemClock());
afterAll(() => checks.close());
const checkSchema = (schema: Schema, value: Schema) => checkBy(checks, schema, value);

const named = (count: number, of: (index: number) => unknown, prefix = "p") =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`${prefix}${at}`, of(at)]));
const nodes = { a: { type: "transform", with: { value: 1 } } };
/** One line of JSON for each key of the document: a schema's problem is told on the second. */
const problemsWith = (parameters: Schema, more: object = {}) =>
  load(JSON.stringify({ nodes: { ...nodes, ...more }, parameters }, undefined, 1)).problems;

const TOO_LARGE = "The JSON Schemas of a definition hold at most 3000 values together";
const FANNED_OUT = "With its references followed, a JSON Schema is at most 10000 schemas";
const ENDLESS = "This reference leads back to where it stands: looking at a value would never end";

/** Each schema refers to the next one twice: the first expands to two to the power of `levels`. */
const doubling = (levels: number, refer: (schema: Schema) => Schema = (schema) => schema) => ({
  $ref: "#/$defs/d0",
  $defs: {
    ...named(levels, (at) => refer({ allOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] }), "d"),
    [`d${levels}`]: { minimum: 1 },
  },
});

describe("a JSON Schema of a definition (workflow definitions)", () => {
  it.each<[string, Schema, string, string]>([
    ["with as many properties", { properties: named(1500, () => ({ type: "string" })) }, "$.parameters", TOO_LARGE],
    ["with as many cases", { oneOf: Array.from({ length: 1000 }, () => ({ required: ["a"] })) }, "$.parameters", TOO_LARGE],
    ["whose references double thirty times", doubling(30), "$.parameters", FANNED_OUT],
    [
      "whose references double thirty times on the way down",
      doubling(30, ({ allOf }) => ({ allOf: (allOf as Schema[]).map((each) => ({ properties: { x: each } })) })),
      "$.parameters",
      FANNED_OUT,
    ],
    ["that refers to itself", { allOf: [{ $ref: "#" }] }, "$.parameters.allOf[0].$ref", ENDLESS],
    [
      "with a definition that refers to itself by another",
      { $defs: { a: { not: { $ref: "#/$defs/b" } }, b: { if: { $ref: "#/$defs/a" } } } },
      '$.parameters["$defs"].a.not["$ref"].if["$ref"]',
      ENDLESS,
    ],
    [
      "with a long pattern",
      { properties: { a: { pattern: "a".repeat(1001) } } },
      "$.parameters.properties.a.pattern",
      "A pattern has at most 1000 characters",
    ],
    [
      "with patterns that repeat as often",
      { patternProperties: { [`${"x{1000}".repeat(21)}`]: true } },
      "$.parameters.patternProperties",
      "The patterns of a definition's JSON Schemas have at most 20000 characters together, repetitions counted as often as they repeat",
    ],
  ])("%s is refused where it stands", (_what, schema, path, message) => {
    const problems = problemsWith(schema)!;
    expect(problems.map((problem) => problem.message)).toEqual([message]);
    expect(problems[0]!.path.replaceAll('["$ref"]', ".$ref")).toBe(path.replaceAll('["$ref"]', ".$ref"));
    expect(problems[0]!.line).toBeGreaterThan(1);
  });

  it("counts with the others", () => {
    const form = { properties: named(100, () => ({ type: "string", title: "A field" })) };
    const gates = (count: number) =>
      named(count, () => ({ type: "human_gate", with: { title: "Go on?", message: "?", form } }), "g");
    expect(problemsWith({}, gates(9))).toBeUndefined();
    expect(problemsWith({}, gates(10))).toMatchObject([{ path: "$.nodes.g9.with.form", message: TOO_LARGE }]);
  });

  it.each<[string, Schema]>([
    ["a tree", { properties: { children: { items: { $ref: "#" } } } }],
    [
      "a definition used in many places",
      { $defs: { a: { type: "string" } }, properties: named(500, () => ({ $ref: "#/$defs/a" })) },
    ],
    [
      "a long chain of references",
      { $ref: "#/$defs/d0", $defs: { ...named(400, (at) => ({ $ref: `#/$defs/d${at + 1}` }), "d"), d400: {} } },
    ],
    ["a property that is called like a keyword", { properties: { $ref: { type: "string" }, pattern: { type: "string" } } }],
    ["patterns", { properties: named(10, () => ({ pattern: "^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$" })) }],
  ])("%s is taken, and checks parameters", async (_what, schema) => {
    expect(problemsWith(schema)).toBeUndefined();
    expect(await checkSchema(schema, {})).toEqual({ value: {} });
  });
});

describe("a value that takes long to be held against a schema", () => {
  const TOO_LONG = { faults: [{ path: "/", message: "takes more than 1 s of processor time to be checked against the schema" }] };

  it("is refused: each level of it doubles the work", async () => {
    const next = { items: { allOf: [{ $ref: "#/$defs/a" }, { $ref: "#/$defs/a" }] } };
    const schema = { properties: { list: { $ref: "#/$defs/a" } }, $defs: { a: next } };
    expect(problemsWith(schema)).toBeUndefined();
    const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);
    expect(await checkSchema(schema, { list: deep(10) })).toEqual({ value: { list: deep(10) } });
    expect(await checkSchema(schema, { list: deep(100) })).toEqual(TOO_LONG);
    // The next one is not held up by that.
    expect(await checkSchema(schema, { list: [] })).toEqual({ value: { list: [] } });
  });

  it("is not refused for the number of its elements, which are compared by their text", async () => {
    const schema = { properties: { list: { uniqueItems: true } } };
    const list = Array.from({ length: 20_000 }, (_, at) => [at]);
    expect(await checkSchema(schema, { list })).toEqual({ value: { list } });
    expect(await checkSchema(schema, { list: [...list, [7]] })).toEqual({
      faults: [{ path: "/list", message: "must NOT have duplicate items" }],
    });
  });

  it("is refused if its anchors are circular, since loading does not follow anchors", async () => {
    expect(await checkSchema({ $ref: "#a", $defs: { a: { $anchor: "a", allOf: [{ $ref: "#a" }] } } }, {})).toEqual(TOO_LONG);
  });
});
