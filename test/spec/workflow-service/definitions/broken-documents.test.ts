import { describe, expect, it } from "vitest";
import { brokenDocuments } from "./broken-documents.ts";
import { load } from "./stand-in-nodes.ts";

describe("a definition is refused with the place and the reason of", () => {
  it.each(brokenDocuments.map((each) => [each.rule, each] as const))("%s", (_rule, { text, messages }) => {
    const { places, plain } = placesOf(text);
    expect(places.length).toBe(messages.length);
    const found = load(plain).problems?.map(({ line, column, message }) => `${line}:${column} ${message}`) ?? [];
    expect(found.map((each, index) => (each.startsWith(`${places[index]} ${messages[index]}`) ? messages[index] : each))).toEqual(
      messages,
    );
  });

  it("sixty things and more, each in its own words", () => {
    expect(brokenDocuments.length).toBeGreaterThan(60);
    expect(new Set(brokenDocuments.map(({ rule }) => rule)).size).toBe(brokenDocuments.length);
  });

  it("all problems at once, in their order, with paths", () => {
    const { problems = [] } = load(
      ["id: a b", "nodes:", "  a: { type: modle }", "  b:", "    type: model", "    needs: [c]", "    with: { promt: x }"].join(
        "\n",
      ),
    );
    expect(problems.map(({ line, column, path }) => `${line}:${column} ${path}`)).toEqual([
      "1:5 $.id",
      "3:14 $.nodes.a.type",
      "6:13 $.nodes.b.needs[0]",
      "7:5 $.nodes.b.with.prompt",
      "7:13 $.nodes.b.with.promt",
    ]);
  });

  it("words that hold no value of the document", () => {
    const { problems = [] } = load(
      "settings: { timeout: hunter2 }\nnodes: { a: { type: http, with: { method: hunter2, url: [hunter2], headers: { a: 7 } } } }",
    );
    expect(problems.length).toBe(4);
    expect(JSON.stringify(problems)).not.toContain("hunter2");
  });
});

describe("what is too much is refused, at once:", () => {
  const node = "{ type: transform, with: { value: 1 } }";
  const first = (text: string) => {
    const { line, column, message } = load(text).problems![0]!;
    return `${line}:${column} ${message}`;
  };

  it("a text over 1 MiB", () => {
    expect(first(`nodes: { a: ${node} }\n#${"x".repeat(1024 * 1024)}`)).toBe("1:1 A definition is at most 1 MiB of text");
  });

  it("aliases that stand for billions of values", () => {
    const levels = Array.from({ length: 12 }, (_, level) => `x${level}: &x${level} [${`*x${level - 1}, `.repeat(level && 9)}1]`);
    expect(first(`${levels.join("\n")}\nnodes: { a: ${node} }`)).toMatch(/The document has more than 200000 values$/);
  });

  it("nesting", () => {
    expect(first(`nodes: { a: { type: transform, with: { value: ${"[".repeat(120)}${"]".repeat(120)} } } }`)).toMatch(
      /^1:\d+ Values may be nested at most 100 levels deep$/,
    );
    expect(first(`{"nodes": ${"[".repeat(200_000)}`)).toMatch(/^1:/);
  });

  it("more than 2,000 nodes", () => {
    const many = (count: number) => `nodes:\n${Array.from({ length: count }, (_, index) => `  n${index}: ${node}\n`).join("")}`;
    expect(load(many(2000)).problems).toBeUndefined();
    expect(first(many(2001))).toBe("2002:3 A definition has at most 2000 nodes");
  });

  it("maps in maps more than 8 deep", () => {
    const deep = (depth: number): string =>
      depth === 0 ? node : `{ type: map, with: { items: "[1]", result: "1", nodes: { n${depth}: ${deep(depth - 1)} } } }`;
    expect(load(`nodes: { a: ${deep(8)} }`).problems).toBeUndefined();
    expect(first(`nodes: { a: ${deep(9)} }`)).toMatch(/`map` and `loop` may be nested at most 8 levels deep$/);
  });
});

function placesOf(text: string): { places: string[]; plain: string } {
  const places: string[] = [];
  let line = 1;
  let column = 1;
  for (const character of text) {
    if (character === "§") places.push(`${line}:${column}`);
    else if (character === "\n") [line, column] = [line + 1, 1];
    else column += character.length;
  }
  return { places, plain: text.replaceAll("§", "") };
}
