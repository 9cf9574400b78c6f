import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { CONTENTS, pagesOf } from "../../../release/site/contents.ts";
import { root } from "../../rooms/repository.ts";
import { type Page, readPages } from "./pages.ts";

let pages: Page[];
beforeAll(async () => {
  pages = await readPages();
});

describe("links between pages", () => {
  it("lead to files that are there, and to headings that they have", () => {
    const relative = pages.flatMap((page) => linksOf(page).map((link) => ({ file: page.file, link })));
    expect(relative.length).toBeGreaterThan(40);
    expect(relative.filter(({ file, link }) => !leads(file, link))).toEqual([]);
  });

  it("lead from README to every page of docs", () => {
    const reached = new Set<string>();
    const visit = (file: string) => {
      if (reached.has(file)) return;
      reached.add(file);
      const page = pages.find((each) => each.file === file);
      for (const link of page ? linksOf(page) : []) visit(targetOf(file, link).file);
    };
    visit("README.md");
    expect(pages.map(({ file }) => file).filter((file) => file.startsWith("docs/") && !reached.has(file))).toEqual([]);
  });
});

describe("the contents of the site", () => {
  it("are a path, and name each page once", () => {
    const parts = ["Start", "Concepts", "Guides", "Areas", "Operate", "Extend", "Reference", "Compare"];
    expect(CONTENTS.map(({ title }) => title)).toEqual(parts);
    const listed = pagesOf();
    expect(listed.filter((file, at) => listed.indexOf(file) !== at)).toEqual([]);
    // Readmes inside of folders of sources and of the playground are for readers of these files.
    const files = pages.map(({ file }) => file).filter((file) => !/^(?:plugins\/src|playground)\//.test(file));
    expect(files.length).toBeGreaterThan(80);
    expect(files.filter((file) => !listed.includes(file))).toEqual([]);
  });
});

function linksOf(page: Page): string[] {
  const targets = [...page.prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = ""]) => target);
  return targets.filter((target) => !/^[a-z]+:/.test(target));
}

/** The path from the root, and the heading, that a link of a file names. */
function targetOf(from: string, link: string): { readonly file: string; readonly heading: string | undefined } {
  const [path = "", heading] = link.split("#");
  const absolute = path === "" ? resolve(root, from) : resolve(root, dirname(from), path);
  return { file: absolute.slice(root.length + 1), heading };
}

function leads(from: string, link: string): boolean {
  const { file, heading } = targetOf(from, link);
  if (!existsSync(resolve(root, file))) return false;
  return heading === undefined || headingsOf(pages.find((page) => page.file === file)).includes(heading);
}

/** As the hosts of repositories name them: lowercase, hyphens for blanks, no punctuation. */
function headingsOf(page: Page | undefined): string[] {
  const headings = [...(page?.prose ?? "").matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-"),
  );
}
