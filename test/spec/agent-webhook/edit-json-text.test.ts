import { describe, expect, it } from "vitest";
import { editJsonText } from "../../../plugins/src/agent-webhook/edit-json-text.ts";

describe("an edit of one member of a JSON text", () => {
  it("takes a name to the letter", () => {
    expect(editJsonText('{"A":1,"a ":2,"a":3}', ["a"], 4)).toBe('{"A":1,"a ":2,"a":4}');
    expect(editJsonText('{"A":1}', ["toString"], 2)).toBe('{"A":1,"toString":2}');
  });

  it("removes nothing where nothing is, and makes nothing on the way there", () => {
    const text = '{ "a": {} }';
    expect(editJsonText(text, ["b"], undefined)).toBe(text);
    expect(editJsonText(text, ["a", "b", "c"], undefined)).toBe(text);
  });

  it("removes the last that is left with all the room that it took", () => {
    expect(editJsonText('{\n  "a": {\n    "b": 1\n  }\n}', ["a", "b"], undefined)).toBe('{\n  "a": {}\n}');
  });

  it("makes the objects that are missing on the way", () => {
    expect(editJsonText('{\n  "a": 1\n}', ["b", "c"], [])).toBe('{\n  "a": 1,\n  "b": {\n    "c": []\n  }\n}');
  });

  it.each(['{"a":1}', '{"a":[{"b":1}]}', '{"a":null}', "[]", ""])(
    "refuses a path through a value that is not an object: %s",
    (text) => {
      expect(() => editJsonText(text, ["a", "b"], 2)).toThrow(TypeError);
    },
  );

  it("repeats no blank line", () => {
    expect(editJsonText('{\n  "a": 1,\n\n  "b": 2\n}', ["c"], 3)).toBe('{\n  "a": 1,\n\n  "b": 2,\n  "c": 3\n}');
  });

  it("repeats the colon of the member before, but no line break in it", () => {
    expect(editJsonText('{"a" : 1}', ["b"], 2)).toBe('{"a" : 1,"b" : 2}');
    expect(editJsonText('{\n "a":\n 1\n}', ["b"], 2)).toBe('{\n "a":\n 1,\n "b": 2\n}');
  });

  it("indents by the first member that begins a line", () => {
    expect(editJsonText('{ "a": 1,\n   "b": {}\n}', ["b", "c"], 2)).toBe('{ "a": 1,\n   "b": {\n      "c": 2\n   }\n}');
  });

  it("breaks lines like the line before, in all three ways", () => {
    for (const eol of ["\n", "\r\n", "\r"]) {
      const text = ["{", '\t"a": 1', "}"].join(eol);
      expect(editJsonText(text, ["b"], [2])).toBe(["{", '\t"a": 1,', '\t"b": [', "\t\t2", "\t]", "}"].join(eol));
    }
  });

  it("keeps a list in its line, and an empty one opens", () => {
    const text = '{\n  "a": ["x"],\n  "b": [],\n  "c": [\n    "y"\n  ]\n}';
    const after = '{\n  "a": ["x", "y"],\n  "b": [\n    "z"\n  ],\n  "c": []\n}';
    expect(
      [["a", ["x", "y"]] as const, ["b", ["z"]] as const, ["c", []] as const].reduce(
        (text, [name, list]) => editJsonText(text, [name], list),
        text,
      ),
    ).toBe(after);
  });
});
