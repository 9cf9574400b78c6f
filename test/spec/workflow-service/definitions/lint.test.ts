import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { lintDefinition } from "../../../../plugins/src/workflow-service/definition/lint-definition.ts";
import { root } from "../../../rooms/repository.ts";
import { load, types } from "./stand-in-nodes.ts";

const warnings = (document: string | object): string[] => {
  const { definition, problems } = load(typeof document === "string" ? document : JSON.stringify(document));
  expect(problems).toBeUndefined();
  return lintDefinition(definition!, types).map(({ path, message }) => `${path} ${message}`);
};
const value = (needs: readonly string[] = [], more: object = {}) => ({ type: "transform", needs, with: { value: 1 }, ...more });
const gate = { type: "human_gate", with: { title: "Go on?" } };
const route = { type: "branch", with: { cases: { a: "parameters.a" }, else: "b" } };

describe("what outputs read", () => {
  const reads = (nodes: object, output: string) => warnings({ nodes, outputs: { output } });
  const lacks = (id: string) => [
    `$.outputs.output The node "${id}" has no output if it is skipped or fails: check with has(nodes.${id}.output)`,
  ];

  it.each([
    ["has a condition", { x: value([], { if: "parameters.a" }) }],
    ["needs one that has", { a: value([], { if: "parameters.a" }), x: value(["a"]) }],
    ["needs a case", { r: route, x: value(["r.a"]) }],
    ["may fail and be let pass", { x: value([], { onError: "continue" }) }],
    ["needs a gate whose rejection another needs", { g: gate, no: value(["g.reject"]), x: value(["g"]) }],
  ])("may not be there where a node %s", (_how, nodes) => {
    expect(reads(nodes, "${{ nodes.x.output }}")).toEqual(lacks("x"));
  });

  it.each([
    ["always runs", { x: value() }],
    ["joins all cases of a branch", { r: route, a: value(["r.a"]), b: value(["r.b"]), x: value(["a", "b"]) }],
    ["needs a failure that is let pass", { a: value([], { onError: "continue" }), x: value(["a"]) }],
    ["needs a gate that fails the run where it is rejected", { g: gate, x: value(["g"]) }],
    ["is a branch or a gate", { x: gate }],
  ])("is there where a node %s", (_how, nodes) => {
    expect(reads(nodes, "${{ nodes.x.output }}")).toEqual([]);
  });

  it.each(["${{ has(nodes.x.output) ? nodes.x.output : 1 }}", "${{ nodes.x.status == 'completed' ? nodes.x.output : 1 }}"])(
    "is no mistake where it is asked for: %s",
    (output) => {
      expect(reads({ x: value([], { if: "parameters.a" }) }, output)).toEqual([]);
    },
  );

  it("is not gone into where there are too many ways", () => {
    const nodes = Object.fromEntries(
      Array.from({ length: 30 }, (_, at) => [`n${at}`, value(at === 0 ? [] : [`n${at - 1}`], { onError: "continue" })]),
    );
    expect(reads({ ...nodes, x: value(["n29"]) }, "${{ nodes.x.output }}")).toEqual([]);
  });
});

describe("parameters that the schema does not declare", () => {
  const reads = (parameters: object | undefined) =>
    warnings({
      ...(parameters && { parameters }),
      nodes: {
        m: {
          type: "map",
          with: { items: "parameters.list", nodes: { n: { ...value(), if: "parameters['b'] == parameters.list" } }, result: "1" },
        },
        r: { type: "branch", with: { cases: { a: "has(parameters.c)" }, else: "b" } },
      },
    });
  const list = { list: { type: "array" } };

  it("are told wherever they are read", () => {
    expect(reads({ type: "object", properties: list })).toEqual([
      '$.nodes.m.with.nodes.n.if There is no declared parameter "b": there is list',
      '$.nodes.r.with.cases.a There is no declared parameter "c": there is list',
    ]);
  });

  it.each([
    ["there is none", undefined],
    ["it names none", { type: "object" }],
    ["it is open", { properties: list, additionalProperties: true }],
    ["it has patterns", { properties: list, patternProperties: { "^.$": {} } }],
    ["it is put together", { properties: list, allOf: [{ properties: { b: {}, c: {} } }] }],
  ])("are not, where the schema does not say which there are: %s", (_how, parameters) => {
    expect(reads(parameters)).toEqual([]);
  });
});

describe("parameters of schedules that the schema does not declare", () => {
  const given = (parameters: object | undefined) =>
    warnings({
      ...(parameters && { parameters }),
      schedules: [{ name: "a", every: "1h", parameters: { region: "north", regoin: "south" } }],
      nodes: { n: value() },
    });

  it("are told at their key", () => {
    expect(given({ properties: { region: {} } })).toEqual([
      '$.schedules[0].parameters.regoin There is no declared parameter "regoin": did you mean "region"?',
    ]);
  });

  it.each([
    ["there is none", undefined],
    ["it is open", { properties: { region: {} }, additionalProperties: true }],
  ])("are not, where the schema does not say which there are: %s", (_how, parameters) => {
    expect(given(parameters)).toEqual([]);
  });
});

it("keywords that JSON Schema does not know are told in all schemas of a definition, and an author's own are not", () => {
  expect(
    warnings({
      parameters: {
        properties: { requried: { minLenght: 1, "x-own": 1 }, list: { items: { anyOf: [{ nope: 1 }] } } },
        $defs: { a: { typ: "string" } },
      },
      nodes: {
        g: { type: "human_gate", with: { title: "x", form: { propertys: {} } } },
        m: { type: "model", with: { prompt: "x", output: { type: "object", enum: [{ whatever: 1 }], default: { more: 1 } } } },
      },
    }).map((line) => line.split(":")[0]),
  ).toEqual([
    '$.parameters.properties.requried.minLenght There is no keyword of JSON Schema "minLenght"',
    '$.parameters.properties.list.items.anyOf[0].nope There is no keyword of JSON Schema "nope"',
    '$.parameters["$defs"].a.typ There is no keyword of JSON Schema "typ"',
    '$.nodes.g.with.form.propertys There is no keyword of JSON Schema "propertys"',
  ]);
});

describe("the definitions to copy", () => {
  const folder = resolve(root, "playground/workflows");
  it.each(readdirSync(folder).filter((name) => name.endsWith(".yaml")))("%s has no warnings", (name) => {
    const { definition } = load(readFileSync(resolve(folder, name), "utf8"), name);
    // Those that the stand-in kinds of nodes do not fit are looked at by the command's own tests.
    expect(definition ? lintDefinition(definition, types) : []).toEqual([]);
  });
});

describe("types that a schema declares", () => {
  const parameters = {
    type: "object",
    properties: {
      count: { type: "string" },
      amount: { type: "integer" },
      either: { type: ["string", "integer"] },
      open: {},
      inner: { type: "object", properties: { flag: { type: "boolean" } } },
    },
  };
  const model = { type: "model", with: { prompt: "x", output: { type: "object", properties: { score: { type: "number" } } } } };
  const told = (expression: string) =>
    warnings({ parameters, nodes: { m: model }, outputs: { o: `\${{ ${expression} }}` } }).map((each) =>
      each.replace("$.outputs.o ", ""),
    );

  it.each([
    ["parameters.count == 7", "This compares a text with a number, so it is always false"],
    ["7 != parameters.count", "This compares a number with a text, so it is always true"],
    ["parameters.inner.flag == 'true'", "This compares true or false with a text, so it is always false"],
    ["nodes.m.output.score == '1'", "This compares a number with a text, so it is always false"],
    ["parameters.either == true", "This compares a text or a number with true or false, so it is always false"],
    ["string(parameters.amount) == parameters.amount", "This compares a text with a number, so it is always false"],
    ["parameters.count || parameters.inner.flag", "`||` takes true and false, and one side is a text"],
  ])("make %s a mistake", (expression, message) => {
    expect(told(expression)).toEqual([expect.stringContaining(message)]);
  });

  it.each([
    "parameters.count == '7'",
    "parameters.amount == 7.5",
    "parameters.either == 7",
    "parameters.open == 7",
    "int(parameters.count) == 7",
    "parameters.inner.flag && nodes.m.output.score > 1.0",
  ])("allow %s", (expression) => {
    expect(told(expression)).toEqual([]);
  });
});

describe("formats of JSON Schema", () => {
  it("are named, because they are not checked, except that of passwords", () => {
    const properties = { to: { type: "string", format: "email" }, key: { type: "string", format: "password" } };
    expect(warnings({ parameters: { type: "object", properties }, nodes: { a: value() } })).toEqual([
      expect.stringMatching(/^\$\.parameters\.properties\.to\.format `format` only tells readers/),
    ]);
  });
});

describe("usual slips", () => {
  const told = (expression: string) => {
    const { problems } = load(JSON.stringify({ nodes: { "a-b": value() }, outputs: { o: `\${{ ${expression} }}` } }));
    return problems?.map(({ message }) => message).join() ?? "";
  };

  it.each([
    ["parameters.a || 'b'", "a default is `has(parameters.a)"],
    ["parameters.a ?? 'b'", "a default is `has(parameters.a)"],
    ["parameters.a.toUpperCase()", "write `TEXT.upperAscii()`"],
    ["parameters.a === 1", "write `==` or `!=`"],
    ["parameters.a?.b", "ask first"],
    ["now()", "no function reads the clock"],
    ["Date.now()", "no function reads the clock"],
    ["JSON.stringify(parameters)", "write `json.encode(VALUE)`"],
    ["parameters.a.map(x => x.b)", "write the name of the element first"],
    ["nodes.a-b.output", "an id with a hyphen is written `nodes['a-b']`"],
  ])("of an expression are answered with what to write: %s", (expression, hint) => {
    expect(told(expression)).toContain(hint);
  });

  it("of a node are answered with what to write", () => {
    const node = { ...value(), retry: 3, timeout: 30 };
    const { problems } = load(JSON.stringify({ nodes: { a: node } }));
    expect(problems?.map(({ message }) => message)).toEqual([
      "Write how often: `retry: { attempts: 3 }`",
      expect.stringContaining("This is not a duration: write `500ms`, `10s`"),
    ]);
  });
});
