import { describe, expect, it } from "vitest";
import { createExpressions, evaluateSource } from "../../../../plugins/src/workflow-service/expressions/create-expressions.ts";
import type { ExpressionScope } from "../../../../plugins/src/workflow-service/expressions/expression.ts";

const names = {
  before: new Set(["a"]),
  known: new Set(["a"]),
  isInside: { map: true, loop: true },
  secrets: new Set<string>(),
};
/** The names that every object of JavaScript has, and those that languages reserve. */
const STRANGE = [...Object.getOwnPropertyNames(Object.prototype), "prototype", "then", "toJSON", "length", "size"];

function evaluate(source: string, scope: object): unknown {
  const given = { parameters: null, nodes: {}, run: {}, secrets: {}, ...scope } as unknown as ExpressionScope;
  const compiled = createExpressions().compile(source, names);
  if ("problems" in compiled) throw new Error(compiled.problems.map(({ message }) => message).join());
  const value = compiled.expression.evaluate(given);
  // Long evaluations run in a thread, with a copy of the values.
  expect(evaluateSource(source, structuredClone(given))).toEqual({ value });
  return value;
}

describe.each(STRANGE)("an object with the field %s", (key) => {
  /** As a sender's body has it. */
  const object = JSON.parse(`{"id": 7, ${JSON.stringify(key)}: {"name": "x"}, "list": [1, 2]}`) as Record<string, unknown>;
  const everywhere = {
    parameters: object,
    nodes: { a: { status: "completed", output: { inner: [object] } } },
    item: object,
    previous: object,
  };
  const field = JSON.stringify(key);

  it.each([
    ["parameters.id + 1", 8],
    ["parameters.list.map(each, each + 1)", [2, 3]],
    ["nodes.a.output.inner[0].id + 1", 8],
    ["nodes.a.output.inner.filter(each, each.id == 7).size()", 1],
    ["item.id == previous.id", true],
    ["item == previous", true],
    ["[parameters, item].distinct().size()", 1],
    ["has(parameters.list) && !has(parameters.nothing)", true],
    ["size(parameters)", 3],
    ["'id' in parameters && !('nothing' in parameters)", true],
    ["type(parameters) == map", true],
    ["parameters.exists(name, name == 'list')", true],
    [`${field} in parameters`, true],
    [`parameters[${field}].name`, "x"],
    [`parameters.map(name, parameters[name]).size()`, 3],
    ["json.decode(json.encode(parameters)).list[1]", 2],
  ])("does not disturb %s", (source, value) => {
    expect(evaluate(source, everywhere)).toEqual(value);
  });

  it("is a value as any other one", () => {
    expect(JSON.stringify(evaluate("{'all': [parameters]}", everywhere))).toBe(JSON.stringify({ all: [object] }));
    expect(JSON.parse(evaluate("json.encode(nodes.a.output)", everywhere) as string)).toEqual({ inner: [object] });
    expect(JSON.parse(evaluate("'%s'.format([item])", everywhere) as string)).toEqual(object);
  });
});

describe("an object that an expression makes", () => {
  it.each(["__proto__", "constructor", "prototype"])("has no key %s, also if the key is computed", (key) => {
    const scope = { parameters: { key } };
    expect(() => evaluate("{parameters.key: 1, 'a': 2}", scope)).toThrow(`An expression cannot make a key "${key}"`);
  });
});
