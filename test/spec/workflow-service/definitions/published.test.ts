import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { definitionJsonSchema } from "../../../../plugins/src/workflow-service/definition/definition-json-schema.ts";
import { publishedSchema, withFunctionReference } from "../../../../release/references/workflows.ts";
import { brokenDocuments } from "./broken-documents.ts";
import { load, types } from "./stand-in-nodes.ts";

const docs = join(import.meta.dirname, "../../../../docs");
const page = readFileSync(join(docs, "workflow-definitions.md"), "utf8");
const examples = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, text = ""]) => text);
const ajv = () => new Ajv2020({ strict: false, allErrors: true, logger: false });

interface Schema {
  readonly description?: string;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly anyOf?: readonly Schema[];
}

/** Every key that a schema declares, at any depth, with its own schema. Conditions (`if`, `then`) declare no keys. */
function* keysOf(schema: Schema, path: string): Generator<readonly [string, Schema]> {
  for (const [key, each] of Object.entries(schema.properties ?? {})) {
    yield [`${path}.${key}`, each];
    yield* keysOf(each, `${path}.${key}`);
  }
  if (schema.items) yield* keysOf(schema.items, `${path}[]`);
  if (typeof schema.additionalProperties === "object") yield* keysOf(schema.additionalProperties, `${path}.*`);
  for (const each of schema.anyOf ?? []) yield* keysOf(each, path);
}

describe("docs/workflow-definitions.md", () => {
  it("shows definitions that can be used", () => {
    expect(examples.length).toBeGreaterThan(1);
    for (const text of examples) expect(load(text).problems ?? []).toEqual([]);
  });

  it("describes the functions of expressions as they are now (npm run docs:workflow)", () => {
    const functions = readFileSync(join(docs, "workflow-functions.md"), "utf8");
    expect(withFunctionReference(functions)).toBe(functions);
  });

  it("docs/reference/workflow-nodes.md describes every kind, with each field of its `with`", () => {
    const reference = readFileSync(join(docs, "reference/workflow-nodes.md"), "utf8");
    const sections = reference.split(/^## /m).slice(1);
    expect(sections.map((text) => /^`(\w+)`/.exec(text)?.[1])).toEqual([
      ...[
        "agent",
        "attachment",
        "branch",
        "callback",
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

  it("describes every key, also inside `with`, for the hover texts of editors", async () => {
    const schema = (await published()) as Schema;
    const { $defs = {} } = schema;
    const keys = [...keysOf(schema, "$"), ...Object.entries($defs).flatMap(([name, each]) => [...keysOf(each, name)])];
    expect(keys.length).toBeGreaterThan(60);
    const isDescribed = ({ description, $ref }: Schema) =>
      (description ?? $defs[$ref?.slice("#/$defs/".length) ?? ""]?.description) !== undefined;
    expect(keys.filter(([, each]) => !isDescribed(each)).map(([path]) => path)).toEqual([]);
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
