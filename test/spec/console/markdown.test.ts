import { expect, it } from "vitest";
import { readMarkdown } from "../../../console/src/blocks/markdown/read-markdown.ts";

it.each([
  ["quotes", ">".repeat(5_000)],
  ["quotes that the parser still reads", "> ".repeat(200) + "deep"],
])("a text of a model with too many levels of %s is shown as it was written", (_what, text) => {
  expect(readMarkdown(text)).toEqual([
    expect.objectContaining({ type: "paragraph", tokens: [expect.objectContaining({ type: "text", text })] }),
  ]);
});

it("a text with few levels is read as Markdown", () => {
  const [quote] = readMarkdown("> - *deep* text");
  expect(quote).toMatchObject({ type: "blockquote", tokens: [{ type: "list" }] });
});

const formulasOf = (text: string) => {
  const found: string[] = [];
  JSON.stringify(readMarkdown(text), (_key, value) => {
    if (value?.type === "math") found.push(`${value.isBlock ? "block" : "inline"} ${value.text}`);
    return value as unknown;
  });
  return found;
};

it.each([
  ["$x^2$ and $5", ["inline x^2"]],
  ["a \\(a+b\\) b", ["inline a+b"]],
  ["a\n$$\nx\n$$\nb", ["block x"]],
  ["- \\[ y \\]", ["block y"]],
  ["| $a$ | b |\n|--|--|\n| c | $d$ |", ["inline a", "inline d"]],
  ["*a* $p_i * q_i$ *b*", ["inline p_i * q_i"]],
  [`$${"x".repeat(3_000)}$`, [`inline ${"x".repeat(3_000)}`]],
])("finds the formulas of %j", (text, formulas) => expect(formulasOf(text)).toEqual(formulas));

it.each([
  ["money", "$5 and $6, or US$7-$8"],
  ["variables", "$HOME:$PATH and ${a}"],
  ["code", "`$x$`\n\n```\n$$y$$\n```"],
  ["escaped dollars", "\\$x\\$"],
  ["dollars in different paragraphs", "$$a\n\nb$$"],
  ["longer formulas than the renderer gets", `$${"x".repeat(5_000)}$`],
])("takes %s for no formulas", (_what, text) => expect(formulasOf(text)).toEqual([]));
