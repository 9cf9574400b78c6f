import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonFault } from "../../../presets/cli/src/config-file.ts";

describe("where a text stops being JSON", () => {
  it.each([
    ["", 1, 1],
    ["{", 1, 2],
    ['{"a":1,}', 1, 8],
    ["{a:1}", 1, 2],
    ['{\n  "a": tru\n}', 2, 8],
    ["[1 2]", 1, 4],
    ["[1,]", 1, 4],
    ['{"a" 1}', 1, 6],
    ['"cut', 1, 1],
    ["[01]", 1, 2],
    ["{} x", 1, 4],
    ["[}", 1, 2],
  ])("%j: line %i, column %i", (text, line, column) => {
    expect(jsonFault(text)).toEqual({ line, column });
  });

  it("is the end of any whole JSON text", () => {
    fc.assert(
      fc.property(fc.json(), fc.constantFrom(undefined, 2), (json, space) => {
        const text = JSON.stringify(JSON.parse(json), null, space);
        const lines = text.split("\n");
        expect(jsonFault(text)).toEqual({ line: lines.length, column: lines.at(-1)!.length + 1 });
      }),
      { numRuns: 200 },
    );
  });
});
