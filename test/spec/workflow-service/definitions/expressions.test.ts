import { describe, expect, it } from "vitest";
import { createExpressions } from "../../../../plugins/src/workflow-service/expressions/create-expressions.ts";
import { ExpressionFailed, type ExpressionScope } from "../../../../plugins/src/workflow-service/expressions/expression.ts";

const names = {
  before: new Set(["a", "b-c"]),
  known: new Set(["a", "b-c"]),
  isInside: { map: true, loop: true },
  secrets: new Set(["KEY"]),
};
const long = Array.from({ length: 100_000 }, (_, index) => index);
const scope: ExpressionScope = {
  parameters: {
    n: 5,
    text: "abc",
    list: [1, 2, 3],
    items: [{ id: 1, ok: true }, { id: 2 }],
    key: "n",
    long,
    digits: "1".repeat(100_000),
    secret: "hunter2",
    odd: { constructor: "x", nothing: null },
  },
  nodes: { a: { status: "completed", output: { text: "hi" } }, "b-c": { status: "skipped", output: undefined } },
  run: { id: "run-1", workflowId: "flow", startedAt: "2030-01-01T00:00:00.000Z" },
  secrets: { KEY: "k" },
  index: 0,
};

const expressions = createExpressions();
function compile(source: string) {
  const compiled = expressions.compile(source, names);
  if ("problems" in compiled) throw new Error(JSON.stringify(compiled.problems));
  return compiled.expression;
}
const evaluate = (source: string, given: ExpressionScope = scope) => compile(source).evaluate(given);

describe("an expression", () => {
  it.each<[string, unknown]>([
    ["parameters.n", 5],
    ["parameters.list", [1, 2, 3]],
    ["parameters.odd.constructor", "x"],
    ["parameters.odd.nothing", null],
    ["nodes.a.output.text", "hi"],
    ["nodes['b-c'].status", "skipped"],
    ["run.workflowId", "flow"],
    ["secrets.KEY", "k"],
    ["item", null],
    ["index", 0],
    ["previous == null", true],
    ["parameters[parameters.key]", 5],
    ["has(nodes.a.output)", true],
    ["has(nodes['b-c'].status) && has(nodes.a.output.nothing)", undefined],
    ["has(parameters.missing)", false],
    ["parameters.items.filter(each, has(each.ok)).map(each, each.id)", [1]],
    ["parameters.items.exists(each, each.id == 2)", true],
    ["parameters.list.map(nodes, nodes + 1)", [2, 3, 4]],
    ["{'a': [1, {'b': parameters.n}]}", { a: [1, { b: 5 }] }],
    ["[1, 'a', null, 1.5]", [1, "a", null, 1.5]],
    ["parameters.text.matches('^a.c$')", true],
    ["cel.bind(x, parameters.n, x * x)", 25],
    ["true ? 1 : 'a'", 1],
    ["false ? 'a' : null", null],
    ["string(parameters.n) + parameters.text", "5abc"],
    ["type(parameters.n) == double", true],
  ])("%s", (source, value) => {
    if (value === undefined) expect(() => evaluate(source)).toThrow("Invalid CEL expression");
    else expect(evaluate(source)).toEqual(value);
  });

  it("says whether a node has an output", () => {
    const given = { ...scope, nodes: { a: { status: "skipped" } } };
    expect(evaluate("has(nodes.a.output)", given)).toBe(false);
    expect(evaluate("has(nodes.a.output) ? nodes.a.output.text : ''", given)).toBe("");
    expect(evaluate("has(nodes.a.output)", { ...scope, nodes: { a: { status: "x", output: undefined } } })).toBe(false);
  });

  it.each(["+", "-", "*", "/", "%"])("takes numbers of JSON and written ones on both sides of %s", (operator) => {
    const expected = { "+": [7, 7, 10], "-": [3, -3, 0], "*": [10, 10, 25], "/": [2.5, 0.4, 1], "%": [1, 2, 0] }[operator]!;
    const sources = [`parameters.n ${operator} 2`, `2 ${operator} parameters.n`, `parameters.n ${operator} parameters.n`];
    expect(sources.map((source) => evaluate(source))).toEqual(expected);
  });

  it("compares numbers of JSON with written ones", () => {
    for (const source of [
      "parameters.n == 5",
      "5 == parameters.n",
      "parameters.n > 4",
      "1 == 1.0",
      "2 in parameters.list",
      "parameters.n in [5]",
    ]) {
      expect(evaluate(source), source).toBe(true);
    }
    expect(evaluate("parameters.n != 5")).toBe(false);
  });

  it.each<[string, unknown]>([
    ["7 / 2", 3],
    ["9007199254740991", 9007199254740991],
    ["9007199254740993", "9007199254740993"],
    ["[4u, {'x': 9007199254740993}]", [4, { x: "9007199254740993" }]],
    ["timestamp('2030-01-01T00:00:00Z') + duration('90m')", "2030-01-01T01:30:00.000Z"],
    ["duration('1h30m')", "5400s"],
    ["duration('-1.5s')", "-1.5s"],
    ["size(parameters.list)", 3],
  ])("comes to JSON: %s", (source, value) => {
    expect(evaluate(source)).toEqual(value);
  });

  it("returns JSON values without copying them", () => {
    const { parameters } = scope as unknown as { parameters: { items: object[] } };
    expect(evaluate("parameters.items")).toBe(parameters.items);
    expect(evaluate("true ? parameters.items : []")).toBe(parameters.items);
    expect((evaluate("parameters.items.filter(each, true)") as unknown[])[0]).toBe(parameters.items[0]);
  });

  it.each([
    ["b'abc'", "bytes or a type"],
    ["type(1)", "bytes or a type"],
    ["parameters.n / 0", "a number that JSON does not have"],
    ["1 / 0", "division by zero"],
    ["parameters.missing", 'there is no "missing"'],
    ["nodes.a.output.text.more", 'there is no "more"'],
    ["parameters.text + parameters.n", "no such overload: dyn<string> + dyn<double>"],
    ["parameters.list[7]", "the list has no such index"],
  ])("fails with a reason: %s", (source, reason) => {
    expect(() => evaluate(source)).toThrow(ExpressionFailed);
    expect(() => evaluate(source)).toThrow(reason);
  });

  it.each([
    "bool(parameters.secret)",
    "int(parameters.secret)",
    "duration(parameters.secret)",
    "timestamp(parameters.secret)",
    "parameters[parameters.secret]",
    "parameters.text.matches('(' + parameters.secret)",
    "parameters.list[int(parameters.n)] == parameters.secret ? 1 : 2",
    "parameters.odd.constructor.name",
    "parameters.secret + 1",
  ])("never says a value in its reason: %s", (source) => {
    expect(() => evaluate(source)).toThrow(ExpressionFailed);
    try {
      evaluate(source);
    } catch (error) {
      expect(String((error as Error).message)).not.toContain("hunter2");
      expect((error as Error).cause).toBeUndefined();
    }
  });

  it.each([
    "parameters.long.all(x, parameters.long.all(y, x + y >= 0))",
    "parameters.long.all(x, parameters.long.all(y, x + y >= 0)) || true",
    "parameters.long.exists(x, parameters.long.exists(y, parameters.long.exists(z, x + y + z < 0)))",
    "parameters.long.filter(x, !(x in parameters.long))",
    `['abcdefgh']${".map(a, a + a)".repeat(60)}`,
    `[parameters.list]${".map(a, a + a)".repeat(60)}`,
    "parameters.long.map(x, parameters.digits + string(x)).size()",
  ])("that costs too much fails: %s", (source) => {
    expect(() => evaluate(source)).toThrow(/it takes too many steps/);
  });

  it("may go through a long list once, and through middling ones within each other", () => {
    expect((evaluate("parameters.long.map(x, x + 1)") as unknown[]).length).toBe(100_000);
    expect(evaluate("parameters.long.map(x, parameters.long.size()).size()")).toBe(100_000);
    const middling = { ...scope, parameters: { list: long.slice(0, 3000) } };
    expect(evaluate("parameters.list.filter(x, x in parameters.list).size()", middling)).toBe(3000);
  });

  it("cannot be kept busy by a regular expression or a duration that a caller sends", () => {
    const given = { ...scope, parameters: { pattern: "(x+x+)+[yz]", text: "x".repeat(50_000), digits: "1".repeat(1_000_000) } };
    expect(evaluate("parameters.text.matches(parameters.pattern)", given)).toBe(false);
    expect(() => evaluate("duration(parameters.digits)", given)).toThrow(ExpressionFailed);
    expect(() => evaluate("parameters.digits.matches('1+x')", given)).toThrow("at most 100000 characters");
  });

  it("is parsed once for each definition", () => {
    expect(compile("parameters.n + 40")).toBe(compile("parameters.n + 40"));
  });
});
