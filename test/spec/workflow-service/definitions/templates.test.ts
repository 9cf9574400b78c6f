import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compileTemplate } from "../../../../plugins/src/workflow-service/definition/compile-template.ts";
import { createExpressions } from "../../../../plugins/src/workflow-service/expressions/create-expressions.ts";
import type { ExpressionScope } from "../../../../plugins/src/workflow-service/expressions/expression.ts";

const expressions = createExpressions();
const none = new Set<string>();
const names = { before: none, known: none, isInside: { map: false, loop: false }, secrets: none };

function fill(template: unknown, parameters: unknown = {}) {
  const problems: unknown[] = [];
  const { fill } = compileTemplate(
    template,
    (source) => expressions.compile(source, names),
    (problem) => problems.push(problem),
  );
  expect(problems).toEqual([]);
  return fill({
    parameters,
    nodes: {},
    run: { id: "r", workflowId: "w", startedAt: "s" },
    secrets: {},
  } satisfies ExpressionScope);
}

describe("a template", () => {
  it.each<[unknown, unknown]>([
    ["${{ parameters.n }}", 3],
    ["${{parameters.n}}", 3],
    ["${{ parameters.list }}", [1, "a"]],
    ["${{ parameters.nothing }}", null],
    ["n is ${{ parameters.n }}", "n is 3"],
    [" ${{ parameters.n }}", " 3"],
    ["${{ parameters.n }}${{ parameters.n }}", "33"],
    ["[${{ parameters.nothing }}]", "[]"],
    ["list: ${{ parameters.list }}", 'list: [1,"a"]'],
    ["yes: ${{ true }}", "yes: true"],
    ["$${{ parameters.n }}", "${{ parameters.n }}"],
    ["$${{ ${{ parameters.n }}", "${{ 3"],
    ["$$${{ parameters.n }}", "$${{ parameters.n }}"],
    ["a $ b } } c {{ d }}", "a $ b } } c {{ d }}"],
    ["${{ '}}' }}", "}}"],
    ["${{ \"}}\" + '{{' }}!", "}}{{!"],
    ["${{ '\\'}}' }}", "'}}"],
    ["${{ '''it's }}''' }}", "it's }}"],
    ["${{ {'a': {'b': 1}} }}", { a: { b: 1 } }],
    ["${{{'a':{'b':1}}}}", { a: { b: 1 } }],
    ["${{ {'a': '}'} }}.", '{"a":"}"}.'],
    [{ "${{ parameters.n }}": "${{ parameters.n }}" }, { "${{ parameters.n }}": 3 }],
    [
      [1, { a: ["${{ parameters.n }}"] }],
      [1, { a: [3] }],
    ],
    [null, null],
    [7, 7],
  ])("%j", (template, value) => {
    expect(fill(template, { n: 3, list: [1, "a"], nothing: null })).toEqual(value);
  });

  it("keeps keys such as __proto__ as data", () => {
    const template = JSON.parse('{"__proto__": {"polluted": "${{ parameters.n }}"}, "constructor": 1}') as unknown;
    const filled = fill(template, { n: 3 }) as object;
    expect(JSON.stringify(filled)).toBe('{"__proto__":{"polluted":3},"constructor":1}');
    expect(Object.getPrototypeOf(filled)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("returns JSON without templates unchanged", () => {
    fc.assert(
      fc.property(
        fc.jsonValue().filter((value) => !JSON.stringify(value).includes("${{")),
        (value) => {
          expect(fill(value)).toBe(value);
        },
      ),
    );
  });

  it("inserts any JSON at any place, and keeps its type", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.string(), (value, key) => {
        const parameters = { value: value === undefined ? null : value };
        expect(fill("${{ parameters.value }}", parameters)).toEqual(parameters.value);
        const around = Object.fromEntries([[key, ["${{ parameters.value }}"]]]);
        expect(JSON.stringify(fill(around, parameters))).toBe(JSON.stringify(Object.fromEntries([[key, [parameters.value]]])));
      }),
    );
  });

  it("returns any text unchanged that is escaped, or inside an expression", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("$", "{", "}", "${{", "}}", "'", '"', "\\", "a", " ")), (parts) => {
        const text = parts.join("");
        const escaped = text.replaceAll("${{", () => "$${{");
        expect(fill(escaped)).toBe(text);
        const quoted = `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
        expect(fill(`\${{ ${quoted} }}`)).toBe(text);
        expect(fill(`<\${{ ${quoted} }}>`)).toBe(`<${text}>`);
      }),
    );
  });
});
