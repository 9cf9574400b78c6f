import { beforeAll, describe, expect, it } from "vitest";
import { type Page, readPage } from "./pages.ts";
import { troubles } from "./troubles.ts";

let page: Page;
beforeAll(async () => {
  page = await readPage("docs/troubleshooting.md");
});

/** Of each heading, what the page quotes below it. */
function quotes(): Map<string, readonly string[]> {
  const sections = page.text.split(/^### /m).slice(1);
  return new Map(
    sections.map((section) => {
      const [heading = ""] = section.split("\n");
      const [, block = ""] = /```text\n([\s\S]*?)```/.exec(section) ?? [];
      return [heading, block.split("\n").filter((line) => line !== "")];
    }),
  );
}

describe("docs/troubleshooting.md", () => {
  it("quotes at least twenty errors, says the cause and the remedy of each, and each is provoked", () => {
    expect(quotes().size).toBeGreaterThanOrEqual(20);
    expect([...quotes().keys()].toSorted()).toEqual(Object.keys(troubles).toSorted());
    for (const section of page.text.split(/^### /m).slice(1))
      expect(section).toMatch(/^[^\n]+\n\n```text\n(?:(?!```)[\s\S])+```\n\n\*\*Cause\.\*\* [\s\S]+\n\n\*\*What to do\.\*\* /);
  });

  it.each(Object.entries(troubles))(
    "says what a user sees: %s",
    async (heading, provoke) => {
      const seen = await provoke();
      if (seen === undefined) return console.warn(`"${heading}" is not provoked: a program that it needs is missing`);
      const lines = quotes().get(heading) ?? [];
      expect(lines.length).toBeGreaterThan(0);
      for (const line of lines) expect(seen).toMatch(toPattern(line));
    },
    60_000,
  );
});

/** `…` stands for anything in the line. */
function toPattern(line: string): RegExp {
  return new RegExp(
    line
      .split("…")
      .map((part) => RegExp.escape(part))
      .join("[^\\n]+"),
  );
}
