import { flattenPreset, jsonObject, objectOnly, record, type RouteContract } from "@portico/core";
import { local, readPlatformOptions } from "@portico/presets/local";
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { agentFileSchema } from "../../../adapters/src/agents/agent-file.ts";
import { writtenDocument } from "../../../plugins/src/workflow-service/definition/document-schema.ts";

const OBJECTS = new Set(["object", "strict_object", "loose_object", "object_with_rest", "record"]);

interface Part {
  readonly [key: string]: unknown;
}

/** The places below a schema where an array would be taken as an object. */
function lenientPlaces(schema: unknown, place: string): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const part = schema as Part;
  const isLenient = part["kind"] === "schema" && OBJECTS.has(part["type"] as string) && v.is(schema as v.GenericSchema, []);
  const named = Object.entries((part["entries"] ?? {}) as Part);
  const inner = ["item", "wrapped", "value", "rest"].map((key) => [key, part[key]] as const);
  const listed = ["options", "pipe"].flatMap((key) => (Array.isArray(part[key]) ? (part[key] as unknown[]) : []));
  return [
    ...(isLenient ? [place] : []),
    ...[...named, ...inner].flatMap(([key, each]) => lenientPlaces(each, `${place}.${key}`)),
    // The first part of a pipe is a schema, which the pipe repeats.
    ...(isLenient ? [] : listed.flatMap((each) => lenientPlaces(each, place))),
  ];
}

describe("an array is not taken as an object", () => {
  it("in any body of any contract", async () => {
    const { plugins } = flattenPreset(local(await readPlatformOptions({ autoProviders: false }, { env: {} })));
    const places = plugins.flatMap(({ name, spec }) =>
      Object.entries(spec.contract as Record<string, RouteContract>).flatMap(([key, { body }]) =>
        lenientPlaces(body, `${name}.${key}`),
      ),
    );
    expect(places).toEqual([]);
  });

  it.each([
    ["an agent.json", agentFileSchema],
    ["a workflow definition", writtenDocument],
  ])("in %s", (_file, schema) => {
    expect(lenientPlaces(schema, "")).toEqual([]);
  });

  it.each([
    ["record", record(v.string(), v.string())],
    ["jsonObject", jsonObject],
    ["objectOnly", objectOnly(v.strictObject({ a: v.optional(v.string()) }))],
    ["objectOnly of a pipe", v.pipe(objectOnly(v.strictObject({})), v.description("An object."))],
  ])("by %s, alone or in a list", (_name, schema) => {
    expect([v.is(schema, {}), v.is(schema, []), v.is(schema, ["a"]), v.is(schema, null), v.is(schema, "a")]).toEqual([
      ...[true, false, false, false, false],
    ]);
    const { issues } = v.safeParse(v.strictObject({ list: v.array(schema) }), { list: [{}, []] });
    expect(issues?.map((issue) => [v.getDotPath(issue), issue.expected])).toEqual([["list.1", "Object"]]);
  });
});

describe("keys of objects from outside", () => {
  const names = ["__proto__", "constructor", "prototype"];
  const written = (name: string) => JSON.parse(`{"a":"1","${name}":"2"}`) as unknown;

  it.each(names)("are refused by `record` if valibot would drop them: %s", (name) => {
    expect(v.is(record(v.string(), v.string()), written(name))).toBe(false);
  });

  it.each(names)("are kept by `jsonObject`: %s", (name) => {
    const value = written(name);
    expect(v.parse(jsonObject, value)).toBe(value);
    expect(JSON.stringify(v.parse(v.strictObject({ value: jsonObject }), { value }).value)).toBe(`{"a":"1","${name}":"2"}`);
  });
});
