import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { definitionJsonSchema } from "../../../../plugins/src/workflow-service/definition/definition-json-schema.ts";
import { publishedSchema, withNodeReference } from "../../../../presets/src/cli/workflow-reference.ts";
import { brokenDocuments } from "./broken-documents.ts";
import { load, types } from "./stand-in-nodes.ts";

const docs = join(import.meta.dirname, "../../../../docs");
const page = readFileSync(join(docs, "workflow-definitions.md"), "utf8");
const examples = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text);
const ajv = () => new Ajv2020({ strict: false, allErrors: true, logger: false });

describe("docs/workflow-definitions.md", () => {
  it("shows definitions that can be used", () => {
    expect(examples.length).toBeGreaterThan(1);
    for (const text of examples) expect(load(text).problems ?? []).toEqual([]);
  });

  it("describes the kinds of nodes as they are now (npm run docs:workflow)", async () => {
    expect(await withNodeReference(page)).toBe(page);
  });

  it("describes every kind that a service has, and each field of its `with`", () => {
    const sections = page.split(/^### /m).slice(1);
    expect(sections.map((text) => /^`(\w+)`/.exec(text)?.[1])).toEqual([
      ...[
        "agent",
        "branch",
        "code",
        "fail",
        "http",
        "human_gate",
        "loop",
        "map",
        "model",
        "tool",
        "transform",
        "wait",
        "workflow",
      ],
    ]);
    const rows = sections.flatMap((text) => text.match(/^\| `(?!with`).*$/gm) ?? []);
    expect(rows.filter((row) => !/ \| [^|]*\w[^|]* \|$/.test(row.replaceAll("**Required.**", "")))).toEqual([]);
  });
});

describe("the JSON Schema of definitions", () => {
  const published = async () => JSON.parse(await publishedSchema()) as object;

  it("is published as it is now (npm run docs:workflow)", async () => {
    expect(readFileSync(join(docs, "workflow-definition.schema.json"), "utf8")).toBe(await publishedSchema());
  });

  it.each([
    ["published", published],
    ["of an instance", async () => definitionJsonSchema(types, { isClosed: true })],
  ])("%s, accepts every example", async (_which, schema) => {
    const check = ajv().compile(await schema());
    for (const text of examples) {
      check(parse(text));
      expect(check.errors ?? []).toEqual([]);
    }
  });

  const check = ajv().compile(definitionJsonSchema(types, { isClosed: true }));
  const structural = brokenDocuments.filter(({ isStructural }) => isStructural);
  it.each(structural.map(({ rule, text }) => [rule, text] as const))("refuses %s", (_rule, text) => {
    expect(check(parse(text.replaceAll("§", "")))).toBe(false);
  });

  it("accepts all that loading accepts: a template is allowed for any value", () => {
    const text = `
nodes:
  a: { type: agent, if: true, with: { agent: x, prompt: y, maxTurns: "\${{ parameters.n }}", toolIds: "\${{ parameters.t }}" } }
  b: { type: wait, with: { for: "\${{ parameters.delay }}" } }
  c: { type: http, with: { method: "\${{ parameters.m }}", url: x, headers: { a: "\${{ parameters.h }}" } } }
  d: { type: workflow, with: { workflow: "\${{ parameters.w }}", parameters: "\${{ parameters.p }}" } }
  e: { type: map, with: { items: ["\${{ parameters.x }}", 1], concurrency: "\${{ parameters.c }}", result: { x: "\${{ item }}" }, nodes: { f: { type: fail, with: { message: x } } } } }
`;
    expect(load(text).problems ?? []).toEqual([]);
    check(parse(text));
    expect(check.errors ?? []).toEqual([]);
  });

  it.each([
    ["a tool without an id", { type: "tool", with: { arguments: {} } }],
    ["a method that there is not", { type: "http", with: { url: "https://example.com", method: "FETCH" } }],
    ["a key that there is not", { type: "model", with: { prompt: "x", tokens: 5 } }],
    ["nothing to compute", { type: "transform" }],
    ["another language", { type: "code", with: { language: "python", source: "1" } }],
  ])("as published, refuses %s", async (_what, node) => {
    expect(ajv().compile(await published())({ nodes: { a: node } })).toBe(false);
  });

  it("refuses kinds of nodes that there are not, where it is of one instance; plugins bring more", async () => {
    const strange = { nodes: { a: { type: "of-a-plugin", with: { any: "thing" } } } };
    expect(check(strange)).toBe(false);
    expect(ajv().compile(await published())(strange)).toBe(true);
  });
});
