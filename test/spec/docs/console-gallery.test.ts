import { readdirSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { readText, root } from "../../rooms/repository.ts";
import { consolePages } from "../../screenshots/console-pages.ts";
import { looks } from "../../screenshots/gallery.ts";

/** Pictures are downloaded with the repository. */
const IMAGES_BYTES = 6_000_000;

it("the gallery has each page of the console in every look: `npm run docs:screenshots` takes the pictures", async () => {
  const page = await readText("docs/console-gallery.md");
  const sections = new Map(page.split(/^## /m).map((section) => [section.split("\n")[0], section]));
  const pages = await consolePages();
  expect(pages.length).toBeGreaterThan(8);
  expect(pages.filter(({ title }) => !sections.has(title))).toEqual([]);
  for (const { title } of pages)
    for (const look of looks)
      expect(sections.get(title), `${title}, ${look}`).toMatch(new RegExp(`src="images/gallery/[a-z0-9-]+-${look}\\.webp"`));
});

it("the pictures of the documentation are of a reasonable size, and the gallery shows each of its own", async () => {
  const folder = resolve(root, "docs/images");
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const bytes = files.reduce((sum, { parentPath, name }) => sum + statSync(resolve(parentPath, name)).size, 0);
  expect(bytes).toBeLessThan(IMAGES_BYTES);
  const shown = [...(await readText("docs/console-gallery.md")).matchAll(/src="images\/gallery\/([^"]+)"/g)].map(
    ([, name]) => name!,
  );
  expect(shown.toSorted()).toEqual(readdirSync(resolve(folder, "gallery")).toSorted());
});
