import { readdirSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { readText, root } from "../../rooms/repository.ts";

/** Pictures are downloaded with the repository. */
const IMAGES_BYTES = 1_500_000;

it("the pictures of the documentation are few, and a page shows each of them", async () => {
  const folder = resolve(root, "docs/images");
  const files = readdirSync(folder);
  expect(files.reduce((sum, name) => sum + statSync(resolve(folder, name)).size, 0)).toBeLessThan(IMAGES_BYTES);
  const page = await readText("docs/console.md");
  expect(files.filter((name) => !page.includes(`images/${name}`))).toEqual([]);
});
