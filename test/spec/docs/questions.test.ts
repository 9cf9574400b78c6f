import { expect, it } from "vitest";
import { forgeSlug } from "../../../release/site/heading-slug.ts";
import { readText } from "../../rooms/repository.ts";
import { readQuestions } from "./read-questions.ts";

/** The text below a heading, up to the next heading of the same level or above. */
function partOf(text: string, slug: string): string | undefined {
  // In blocks of code, `#` begins a comment.
  const prose = text.replaceAll(/^```[^]*?^```$/gm, (block) => " ".repeat(block.length));
  const headings = [...prose.matchAll(/^(#+) (.*)$/gm)];
  const at = headings.findIndex(([, , title = ""]) => forgeSlug(title) === slug);
  if (at < 0) return undefined;
  const level = headings[at]![1]!.length;
  const next = headings.slice(at + 1).find(([, marks = ""]) => marks.length <= level);
  return text.slice(headings[at]!.index, next?.index);
}

it("docs/questions.md leads from each of 34 questions to a heading whose part of the page has the answer's words", async () => {
  const questions = await readQuestions();
  expect(questions).toHaveLength(34);
  const missing: string[] = [];
  for (const { question, file, heading, words } of questions) {
    const part = partOf(await readText(file), heading);
    if (!part?.includes(words)) missing.push(`${question} ${file}#${heading}: ${words}`);
  }
  expect(missing).toEqual([]);
});
