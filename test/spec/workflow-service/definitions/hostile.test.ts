import { systemClock } from "@portico/adapters/clock/system";
import type { ports, Scope } from "@portico/core";
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadDefinition } from "../../../../plugins/src/workflow-service/definition/load-definition.ts";
import { readDefinitions, type ReadDefinition } from "../../../../plugins/src/workflow-service/definition/read-definitions.ts";
import { openAdapter } from "../../../conformance/open-adapter.ts";
import { brokenDocuments } from "./broken-documents.ts";
import { load, secretNames, types } from "./stand-in-nodes.ts";

const numbered = (line: (index: number) => string, count: number) => Array.from({ length: count }, (_, at) => line(at)).join("");

const undo: (() => unknown)[] = [];
const scope: Scope = { onClose: (run) => void undo.push(run), onReady: (run) => void run() };
const log = { warn() {} };
let read: ReadDefinition;
beforeAll(async () => {
  const clock = await openAdapter(systemClock());
  undo.push(clock.close);
  read = readDefinitions({ types, secretNames }, { clock: clock.port, log }, scope);
});
afterAll(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

describe("a long definition (workflow definitions)", () => {
  it("whose aliases say more than four million characters is refused", async () => {
    const text = `a: &a ${"x".repeat(5000)}\nb: [${"*a, ".repeat(1000)}]\nnodes: {}\n`;
    const message = "The document has more than 4194304 characters";
    expect((await read({ name: "sample.yaml", text })).problems).toMatchObject([{ line: 1, message }]);
  });

  it("that can be used is the same definition", async () => {
    const text = `nodes:\n${numbered((at) => `  n${at}: { type: transform, with: { value: "\${{ parameters.a }} ${at}" } }\n`, 200)}`;
    const { definition } = await read({ name: "sample.yaml", text });
    const here = load(text).definition!;
    expect(definition).toMatchObject({ id: "sample", hash: here.hash, text });
    expect([...definition!.graph.nodes.keys()]).toEqual([...here.graph.nodes.keys()]);
  });
});

describe("many problems", () => {
  it.each([
    ["of unknown keys", numbered((at) => `k${at}: 1\n`, 300)],
    [
      "of unknown keys in a node",
      `nodes: { a: { type: transform, with: { value: 1 }, ${numbered((at) => `k${at}: 1, `, 300)} } }`,
    ],
    [
      "of unknown keys in with",
      `nodes: { a: { type: http, with: { method: GET, url: x, ${numbered((at) => `k${at}: 1, `, 300)} } } }`,
    ],
    ["of the parser", "\t- a\n".repeat(1600)],
    ["of nodes", `nodes:\n${numbered((at) => `  n${at}: 1\n`, 300)}`],
  ])("%s are 200 that are told, and nothing is thrown", (_what, text) => {
    const { problems } = load(text);
    expect(problems).toHaveLength(200);
  });
});

it("compiling ends where enough is wrong, and at the most nodes that a definition has", () => {
  let checked = 0;
  const rules: ports.NodeRules = {
    type: "wrong",
    input: v.strictObject({}),
    check: () => (checked++, [{ path: [], message: "wrong" }]),
    repeatable: true,
  };
  const loading = { types: new Map([["wrong", rules]]), secretNames: [] };
  const many = (count: number) => `nodes:\n${numbered((at) => `  n${at}: { type: wrong }\n`, count)}`;
  expect(loadDefinition({ name: "a.yaml", text: many(1500) }, loading).problems).toHaveLength(200);
  expect(checked).toBe(1000);
  const { problems } = loadDefinition({ name: "a.yaml", text: many(3000) }, loading);
  expect(problems).toMatchObject([{ line: 2002, message: "A definition has at most 2000 nodes" }]);
  expect(checked).toBe(1000);
});

it.each([
  ["as many as there may be", 5000, "1", undefined],
  ["one more", 5001, "1", "A definition has at most 5000 expressions, of 150000 characters together"],
  [
    "fewer, and too long together",
    16,
    `'${"x".repeat(9_500)}'`,
    "A definition has at most 5000 expressions, of 150000 characters together",
  ],
])("expressions hold up nobody by their number: %s", (_what, count, expression, problem) => {
  const rules: ports.NodeRules = { type: "value", input: v.strictObject({ value: v.unknown() }), repeatable: true };
  const value = Array.from({ length: count }, () => `\${{ ${expression} }}`);
  const text = JSON.stringify({ nodes: { a: { type: "value", with: { value } } } });
  const { problems } = loadDefinition({ name: "a.json", text }, { types: new Map([["value", rules]]), secretNames: [] });
  expect(problems?.map(({ message }) => message)).toEqual(problem && [problem]);
});

describe("a definition that is read in a thread", () => {
  it.each(brokenDocuments.map(({ rule, text }) => [rule, text]))("is told the same problems: %s", async (_rule, broken) => {
    const text = `${broken.replaceAll("§", "")}\n${"# more than is read on the event loop\n".repeat(250)}`;
    expect(await read({ name: "sample.yaml", text })).toEqual(load(text));
  });

  it("is read without the thread for its runs, if that is closed first", async () => {
    const ends: (() => unknown)[] = [];
    const clock = await openAdapter(systemClock());
    undo.push(clock.close);
    const late = readDefinitions(
      { types, secretNames },
      { clock: clock.port, log },
      { ...scope, onClose: (run) => void ends.push(run) },
    );
    for (const each of ends) await each();
    const text = `nodes: { a: { type: transform, with: { value: 1 } } }\n${"# a comment\n".repeat(1000)}`;
    expect((await late({ name: "sample.yaml", text })).problems).toHaveLength(1);
    expect((await late({ name: "sample.yaml", text, isStored: true })).definition).toMatchObject({ id: "sample" });
  });
});
