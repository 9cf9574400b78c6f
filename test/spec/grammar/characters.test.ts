import { firstCharacters, flattenPreset, hasAtMost, maxCharacters, type RouteContract } from "@portico/core";
import { toJsonSchema } from "@valibot/to-json-schema";
import { local, readPlatformOptions } from "@portico/presets/local";
import * as v from "valibot";
import { describe, expect, it } from "vitest";

/** One character of two UTF-16 units. */
const BEE = "🐝";

interface Part {
  readonly [key: string]: unknown;
}

/** The places below a schema where the length of a text is limited in UTF-16 units. */
function unitPlaces(schema: unknown, place: string): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const part = schema as Part;
  const pipe = (Array.isArray(part["pipe"]) ? part["pipe"] : []) as readonly Part[];
  const countsUnits = part["type"] === "string" && pipe.some(({ reference }) => reference === v.maxLength);
  const named = Object.entries((part["entries"] ?? {}) as Part);
  const inner = ["item", "wrapped", "key", "value", "rest"].map((key) => [key, part[key]] as const);
  const listed = [...pipe.slice(1), ...((part["options"] ?? []) as readonly unknown[])];
  return [
    ...(countsUnits ? [place] : []),
    ...[...named, ...inner].flatMap(([key, each]) => unitPlaces(each, `${place}.${key}`)),
    ...listed.flatMap((each) => unitPlaces(each, place)),
  ];
}

describe("a limit in characters", () => {
  it("counts characters, not UTF-16 units (specification 8)", () => {
    const schema = maxCharacters(3);
    const fits = (text: string) => v.is(v.pipe(v.string(), schema), text);
    expect([
      fits(BEE.repeat(3)),
      fits(BEE.repeat(4)),
      fits("abc"),
      fits("abcd"),
      fits(`ab${BEE}`),
      fits("\ud83d\ud83d\ud83d"),
    ]).toEqual([...[true, false, true, false, true, true]]);
    for (const text of ["", "abc", "abcd", BEE.repeat(3), BEE.repeat(4), `${BEE}abc`])
      expect([text, hasAtMost(3, text)]).toEqual([text, fits(text)]);
  });

  it("is part of documents that are derived from schemas, which count the same way", () => {
    expect(toJsonSchema(v.pipe(v.string(), maxCharacters(3)))).toMatchObject({ type: "string", maxLength: 3 });
  });

  it("cuts no character", () => {
    expect([
      firstCharacters(2, "abc"),
      firstCharacters(3, "abc"),
      firstCharacters(2, `a${BEE}b`),
      firstCharacters(1, BEE),
    ]).toEqual([...["ab", "abc", `a${BEE}`, BEE]]);
  });

  it("is that of every text in every contract", async () => {
    const { plugins } = flattenPreset(local(await readPlatformOptions({ autoProviders: false }, { env: {} })));
    const places = plugins.flatMap(({ name, spec }) =>
      Object.entries(spec.contract as Record<string, RouteContract>).flatMap(([key, { body, query, params }]) =>
        [body, query, params].flatMap((schema) => unitPlaces(schema, `${name}.${key}`)),
      ),
    );
    expect(places).toEqual([]);
  });
});
