import { expect, it } from "vitest";
import { type Page, readPages } from "./pages.ts";

/** The words that people have written in pages of `docs`, counted last and rounded up. Lower it after a cut, and never raise it. */
const MOST_WORDS = 77_000;

it(`pages of docs that people write have at most ${MOST_WORDS.toLocaleString("en")} words`, async () => {
  const written = (await readPages())
    .filter(({ file }) => file.startsWith("docs/") && !file.startsWith("docs/reference/"))
    .map((page) => [wordsOf(page), page.file] as const)
    .toSorted(([one], [other]) => other - one);
  const sum = written.reduce((words, [own]) => words + own, 0);
  const told = `Together they have ${sum}. The longest:\n${written.map((each) => each.join(" ")).join("\n")}\n`;
  expect(sum, told).toBeLessThanOrEqual(MOST_WORDS);
});

/** Counts the words of prose and tables, without comments and without parts that are generated. */
function wordsOf({ prose }: Page): number {
  const written = prose.replaceAll(/<!-- [^>]*: generated [^]*?<!-- End of [^>]*-->/g, "").replaceAll(/<!--[^]*?-->/g, "");
  return written.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}
