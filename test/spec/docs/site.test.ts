import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pagesOf, sitePath } from "../../../release/site/contents.ts";
import { searchOptions } from "../../../release/site/search.ts";
import { findChromium, type Page, useChromium } from "../../browser/chromium.ts";
import { hasTools, loadTool } from "../../harness/oracle.ts";
import { root } from "../../rooms/repository.ts";
import { readPages } from "./pages.ts";
import { readQuestions } from "./read-questions.ts";

interface MiniSearchClass {
  loadJSON(json: string, options: object): { search(words: string): { readonly id: string }[] };
}

const REPOSITORY = "https://forge.example/portico";
const isInstalled = hasTools("release/site", "Tests of the site of the pages");

describe.skipIf(!isInstalled)("the site of the pages", () => {
  let folder: string;
  const htmlOf = (file: string) => readFile(join(folder, sitePath(file).replace(/\.md$/, ".html")), "utf8");
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "portico-site-"));
    // The build fails at a link to a page that is not there.
    const build = ["release/site/node_modules/vitepress/bin/vitepress.js", "build", "release/site", "--outDir", folder];
    // With the `test` of Vitest as NODE_ENV, VitePress builds no search index.
    const env = { ...process.env, NODE_ENV: "production", PORTICO_REPOSITORY: REPOSITORY, PORTICO_SITE_BASE: "/" };
    await promisify(execFile)(process.execPath, build, { cwd: root, env, maxBuffer: 64 * 1024 * 1024 });
  }, 600_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it("has each page of the contents, and no other page", async () => {
    const built = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".html") && file !== "404.html");
    expect(built.sort()).toEqual(
      pagesOf()
        .map((file) => sitePath(file).replace(/\.md$/, ".html"))
        .sort(),
    );
  });

  it("links only to pages and headings that it has, and to files on the forge", async () => {
    const texts = new Map<string, string>();
    for (const file of pagesOf()) texts.set(`/${sitePath(file).replace(/\.md$/, ".html")}`, await htmlOf(file));
    const dead: string[] = [];
    let toHeadings = 0;
    for (const [from, text] of texts) {
      for (const [, href = ""] of text.matchAll(/<a [^>]*?href="([^"]*)"/g)) {
        if (/^[a-z]+:/.test(href)) continue;
        const [path = "", heading] = decodeURI(href).split("#");
        const target = texts.get(path === "" ? from : path.replace(/\/$/, "/index.html"));
        if (heading !== undefined) toHeadings++;
        const leads = target !== undefined && (!heading || target.includes(`id="${heading}"`));
        if (!leads) dead.push(`${from}: ${href}`);
      }
    }
    expect(toHeadings).toBeGreaterThan(500);
    expect(dead).toEqual([]);
    expect([...texts.values()].some((text) => text.includes(`href="${REPOSITORY}/blob/main/playground/`))).toBe(true);
  });

  it("finds the answer of each question among the first three results of a search for the question", async () => {
    const chunks = join(folder, "assets/chunks");
    const index = (await readdir(chunks)).find((file) => file.startsWith("@localSearchIndexroot"))!;
    const { default: json } = (await import(pathToFileURL(join(chunks, index)).href)) as { default: string };
    const { default: MiniSearch } = await loadTool<{ default: MiniSearchClass }>("release/site", "minisearch");
    // As the search box of VitePress calls it.
    const search = MiniSearch.loadJSON(json, {
      fields: ["title", "titles", "text"],
      storeFields: ["title", "titles"],
      searchOptions: { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 }, ...searchOptions },
    });
    const questions = await readQuestions();
    const lost = questions.flatMap(({ question, file }) => {
      const page = `/${sitePath(file).replace(/(?:(^|\/)index)?\.md$/, (_, before?: string) => before ?? ".html")}`;
      const first = search.search(question).slice(0, 3);
      return first.some(({ id }) => id.split("#")[0] === page) ? [] : [[question, page, ...first.map(({ id }) => id)]];
    });
    expect(questions).toHaveLength(34);
    expect(lost).toEqual([]);
  });

  it("offers to edit the file of a page", async () => {
    expect(await htmlOf("docs/deploy/README.md")).toContain(`${REPOSITORY}/edit/main/docs/deploy/README.md`);
  });

  describe.skipIf(findChromium() === undefined)("in a browser", () => {
    const browser = useChromium();
    const types: Readonly<Record<string, string>> = {
      ...{ ".html": "text/html", ".js": "text/javascript", ".css": "text/css" },
      ...{ ".json": "application/json", ".png": "image/png", ".woff2": "font/woff2" },
    };
    /** Opens a page of the site, and collects the errors of its scripts. */
    async function open(path: string, size: { readonly width: number; readonly height: number }) {
      const page = await browser().newPage({ viewport: size });
      const errors: Error[] = [];
      page.on("pageerror", (error) => errors.push(error));
      await page.route("http://site.example/**", async (route) => {
        const { pathname } = new URL(route.request().url());
        const file = join(folder, decodeURI(pathname).replace(/\/$/, "/index.html"));
        const body = await readFile(file).catch(() => undefined);
        if (!body) return route.fulfill({ status: 404 });
        return route.fulfill({ body, contentType: types[extname(file)] ?? "application/octet-stream" });
      });
      await page.goto(`http://site.example${path}`);
      return { page, errors, [Symbol.asyncDispose]: () => page.close() };
    }
    const overflow = (page: Page) =>
      page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

    it("finds a page by words, and is dark on demand", async () => {
      await using opened = await open("/", { width: 1280, height: 800 });
      const { page, errors } = opened;
      await page.getByRole("button", { name: "Search" }).first().click();
      await page.getByPlaceholder("Search").fill("How do I report a vulnerability?");
      await page.getByRole("option").first().waitFor();
      expect(await page.getByRole("option").first().textContent()).toMatch(/report a vulnerability/i);
      await page.keyboard.press("Escape");
      await page.getByRole("switch").first().click();
      expect(await page.evaluate(() => document.documentElement.className)).toContain("dark");
      expect(errors).toEqual([]);
    });

    it("draws each picture of the pages", async () => {
      const pictures = (await readPages()).map(({ file, blocks }) => ({
        file,
        sources: blocks.filter(({ language }) => language === "mermaid").map(({ text }) => text),
      }));
      const withPictures = pictures.filter(({ sources }) => sources.length > 0);
      expect(withPictures).not.toEqual([]);
      for (const { file, sources } of withPictures) {
        await using opened = await open(`/${sitePath(file).replace(/\.md$/, ".html")}`, { width: 1280, height: 800 });
        await expect.poll(() => opened.page.locator(".mermaid-picture svg").count()).toBe(sources.length);
        expect([file, opened.errors]).toEqual([file, []]);
      }
    });

    it.each(["/", "/areas/workflow-service.html", "/configuration.html", "/concepts.html"])(
      "shows %s on a phone without scrolling sideways",
      async (path) => {
        await using opened = await open(path, { width: 390, height: 844 });
        await opened.page.getByRole("heading", { level: 1 }).waitFor();
        expect(await overflow(opened.page)).toBeLessThanOrEqual(0);
        await opened.page.getByRole("button", { name: "Menu" }).click();
        await opened.page.locator(".VPSidebar").getByText("Reference").waitFor();
        expect(opened.errors).toEqual([]);
      },
    );
  });
});
