import { describe, expect, it } from "vitest";
import { createExpressions } from "../../../../plugins/src/workflow-service/expressions/create-expressions.ts";
import { ExpressionFailed, type ExpressionScope } from "../../../../plugins/src/workflow-service/expressions/expression.ts";
import { FUNCTION_GROUPS } from "../../../../plugins/src/workflow-service/expressions/function-library.ts";

const nowhere = {
  before: new Set<string>(),
  known: new Set<string>(),
  isInside: { map: false, loop: false },
  secrets: new Set(["KEY"]),
};
const parameters = {
  text: "a-b",
  n: 2,
  long: Array.from({ length: 100_000 }, (_, index) => index),
  wide: "ab".repeat(50_000),
  people: [{ name: "Zoë" }, { name: "Ada" }],
  mixed: [1, "a"],
};
const scope: ExpressionScope = { parameters, nodes: {}, run: {}, secrets: { KEY: "hunter22" } } as never;

function compile(source: string) {
  const compiled = createExpressions().compile(source, nowhere);
  if ("problems" in compiled) throw new Error(compiled.problems.map(({ message }) => message).join());
  return compiled.expression;
}
const evaluate = (source: string, given = scope) => compile(source).evaluate(given);
const documented = FUNCTION_GROUPS.flatMap(({ functions }) => functions);

describe("a function of expressions", () => {
  it.each(documented.map(({ usage, example }) => [usage, ...example] as const))("%s: %s", (_usage, expression, value) => {
    expect(evaluate(expression)).toEqual(value);
  });

  it("takes values of JSON, whose types are known only at the evaluation", () => {
    expect(evaluate("parameters.text.replace('-', '+')")).toBe("a+b");
    expect(evaluate("parameters.people.sortBy(p, p.name).map(p, p.name)")).toEqual(["Ada", "Zoë"]);
    expect(evaluate("math.greatest(parameters.n, 1)")).toBe(2);
    expect(evaluate("[math.least(7), math.least(7.5), math.greatest(parameters.n), math.least(parameters.long)]")).toEqual([
      7, 7.5, 2, 0,
    ]);
    expect(evaluate("math.round(parameters.n / 4.0)")).toBe(1);
    expect(evaluate("lists.range(int(parameters.n)).map(i, parameters.people.sortBy(p, p.name)[i].name)")).toEqual([
      "Ada",
      "Zoë",
    ]);
  });

  it.each([
    ["size('a😀b')", 3],
    ["'a😀b'.charAt(1)", "😀"],
    ["'a😀b'.charAt(2)", "b"],
    ["'a😀b'.charAt(3)", ""],
    ["'a😀b'.indexOf('b')", 2],
    ["'b😀b😀'.indexOf('😀', 2)", 3],
    ["'a😀b😀'.lastIndexOf('😀')", 3],
    ["'a😀b😀'.lastIndexOf('😀', 2)", 1],
    ["'a😀b'.indexOf('c')", -1],
    ["'a😀b'.substring(2)", "b"],
    ["'a😀b'.substring(1, 2)", "😀"],
    ["'a😀b'.substring('a😀b'.indexOf('b'))", "b"],
    ["'a😀'.split('')", ["a", "😀"]],
    ["'a😀😀'.split('', 2)", ["a", "😀😀"]],
    ["'a😀'.reverse()", "😀a"],
    ["'a😀'.replace('', '-')", "-a-😀-"],
    ["'a,b,c'.split(',', 2)", ["a", "b,c"]],
    ["'a,b'.split(',', 0)", []],
    ["'banana'.lastIndexOf('an', 2)", 1],
  ])("counts the characters of a text, also those beyond 16 bits: %s", (expression, value) => {
    expect(evaluate(expression)).toEqual(value);
  });

  it.each([
    ["'ÀÉ Straße IİK'.lowerAscii()", "ÀÉ straße iİK"],
    ["'àé straße ﬁ ı'.upperAscii()", "àé STRAßE ﬁ ı"],
    ["parameters.people[0].name.upperAscii()", "ZOë"],
  ])("changes only letters of ASCII: %s", (expression, value) => {
    expect(evaluate(expression)).toEqual(value);
  });

  it.each(["'a😀'.substring(3)", "'a😀'.charAt(3)", "'a😀'.indexOf('a', 2)", "'abc'.substring(2, 1)", "'abc'.substring(-1)"])(
    "refuses positions outside of a text: %s",
    (expression) => {
      expect(() => evaluate(expression)).toThrow("an index is out of range");
    },
  );

  it.each([
    "2030-02-30T10:00:00Z",
    "2030-02-29T10:00:00Z",
    "2030-04-31T10:00:00+02:00",
    "2030-13-01T10:00:00Z",
    "1 Feb 2030 10:00:00 UTC",
  ])("timestamp() refuses %s, which is no time", (text) => {
    expect(() => evaluate(`timestamp('${text}')`)).toThrow("this is not a timestamp");
  });

  it.each([
    ["2028-02-29T10:00:00Z", "2028-02-29T10:00:00.000Z"],
    ["2030-02-28t23:30:00.123456789-01:00", "2030-03-01T00:30:00.123Z"],
    ["2030-01-31 10:00:00+00:00", "2030-01-31T10:00:00.000Z"],
  ])("timestamp() reads %s", (text, value) => {
    expect(evaluate(`timestamp('${text}')`)).toBe(value);
    expect(evaluate("timestamp(1896084000)")).toBe("2030-01-31T10:00:00.000Z");
  });

  it("json.decode keeps the digits of whole numbers beyond 2^53, as texts", () => {
    expect(evaluate(`json.decode('{"id": 247868000247868102, "n": [9007199254740991, 1.5]}')`)).toEqual({
      id: "247868000247868102",
      n: [9_007_199_254_740_991, 1.5],
    });
    expect(evaluate(`bytes('{"id": -247868000247868102}').json().id`)).toBe("-247868000247868102");
  });

  it.each([
    ["'a'.replace(1, 'b')", "no matching overload"],
    ["math.abs('a')", "no matching overload"],
    ["hash.sha256(1)", "no matching overload"],
    ["'a'.sortBy(x, x)", "no matching overload"],
    ["[1].sortBy(1, 2)", "name of a variable"],
    ["maths.abs(1)", 'There is no name "maths"'],
  ])("%s is refused when the definition is loaded", (source, message) => {
    expect(() => compile(source)).toThrow(message);
  });

  it.each([
    ["parameters.mixed.sort()", "only values of one type can be sorted"],
    ["[[1]].sort()", "only numbers, texts, booleans"],
    ["'%d'.format(['a'])", "takes a number for %d"],
    ["'%s %s'.format(['a'])", "fewer values"],
    ["'%s'.format(['a', 'b'])", "more values"],
    ["'%q'.format(['a'])", "format() knows"],
    ["json.decode('{')", "takes JSON"],
    ["base64.decode('*')", "takes Base64"],
    ["url.decode('%zz')", "URL-encoded"],
    ["timestamp(0).format('%Y', 'Mars/North')", "name of a time zone"],
    ["[1].slice(0, 2)", "positions of the list"],
  ])("%s fails with a message that says why", (source, message) => {
    expect(() => evaluate(source)).toThrow(ExpressionFailed);
    expect(() => evaluate(source)).toThrow(message);
  });

  it.each([
    "parameters.wide.replace('a', parameters.wide)",
    "parameters.long.map(n, parameters.long.sort())",
    "parameters.long.map(n, parameters.long.distinct())",
    "parameters.long.map(n, json.encode(parameters.long))",
    "parameters.long.map(n, hash.sha256(parameters.wide).hex())",
    "parameters.long.sortBy(n, parameters.long.sum())",
    "parameters.long.map(n, parameters.long).flatten()",
    "lists.range(100001)",
    "parameters.long.map(n, lists.range(100000))",
    "'%s'.format([parameters.long.map(n, parameters.wide)])",
  ])("%s stops at the limits of an evaluation", (source) => {
    expect(() => evaluate(source)).toThrow(/too many steps|at most/);
  });

  it("makes no secret visible: what it makes of a secret is a secret, too", () => {
    const derived: unknown[] = [];
    const telling = { ...scope, derived: (_read: unknown, made: unknown) => void derived.push(made) } as ExpressionScope;
    evaluate("base64.encode(secrets.KEY)", telling);
    evaluate("secrets.KEY.replace('h', 'j')", telling);
    evaluate("secrets.KEY.reverse()", telling);
    expect(derived).toEqual(["aHVudGVyMjI=", "junter22", "22retnuh"]);
  });
});
