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
