import { expect, it } from "vitest";
import { readText } from "../../rooms/repository.ts";

/** What builds and checks the console, and packages of this repository: nothing of it is a part of the page. */
const TOOLS = /^(?:@portico\/.*|@sveltejs\/vite-plugin-svelte|@types\/.*|svelte-check|typescript|vite)$/;

it("docs/decisions/console-libraries.md names each library that the console depends on, and each file that it says is hand-written is there", async () => {
  const page = await readText("docs/decisions/console-libraries.md");
  const { devDependencies } = JSON.parse(await readText("console/package.json")) as { devDependencies: Record<string, string> };
  const [used, own] = page.split("## What the console writes itself");
  const named = [...used!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
  const libraries = Object.keys(devDependencies).filter((name) => !TOOLS.test(name));
  expect(libraries.length).toBeGreaterThan(10);
  expect(libraries.filter((name) => !named.includes(name) && !named.includes(name.replace(/\/.*/, "/*")))).toEqual([]);
  const files = [...own!.matchAll(/`((?:api|blocks|shell)\/[\w./-]+\.(?:ts|svelte))`/g)].map(([, file]) => file!);
  expect(files.length).toBeGreaterThan(5);
  for (const file of files) await expect(readText(`console/src/${file}`), file).resolves.toBeTruthy();
});
