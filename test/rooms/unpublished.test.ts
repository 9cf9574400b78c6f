import { beforeAll, describe, expect, it } from "vitest";
import { readText, repositoryFiles } from "./repository.ts";

/** The page that says how to get packages that no registry has. */
const PAGE = "docs/installation.md";
/** `npm install portico`, `npm i -D @portico/core vitest`; not `npm install ../packed/portico-core-1.0.0.tgz`. */
const FROM_REGISTRY = /\bnpm (?:install|i|add|exec)\b[^\n`;|&]*?[ "'](?:@portico\/|portico(?![\w./-]))/;

let texts: [file: string, text: string][];
let isPublished: boolean;
beforeAll(async () => {
  const files = (await repositoryFiles()).filter(
    (file) => /\.(?:md|ts|mjs|svelte|ya?ml|json)$/.test(file) && file !== "test/rooms/unpublished.test.ts",
  );
  texts = await Promise.all(files.map(async (file) => [file, await readText(file)] as [string, string]));
  isPublished = (JSON.parse(await readText("presets/cli/package.json")) as { version: string }).version !== "0.0.0";
});

const containing = (files: RegExp, words: RegExp) =>
  texts.filter(([file, text]) => files.test(file) && words.test(text)).map(([file]) => file);

describe("until the packages are published", () => {
  it("no text says to install them from a registry", () => {
    if (isPublished) return;
    expect(containing(/./, FROM_REGISTRY)).toEqual([]);
    for (const said of ["npm install portico", "npm i -D vitest @portico/core", "npm exec portico"])
      expect(said).toMatch(FROM_REGISTRY);
    for (const said of ["npm install ../portico/dist/packages/*.tgz", "npm install portico-0.0.0.tgz"])
      expect(said).not.toMatch(FROM_REGISTRY);
  });

  it("a page with `npx portico` links to the page that says where it runs this Portico", () => {
    if (isPublished) return;
    const pages = containing(/^(?!\.changeset\/).*\.md$/, /npx portico/).filter((file) => file !== PAGE);
    expect(pages).toContain("README.md");
    const linked = containing(/\.md$/, /\]\((?:\.\.\/|docs\/)*installation\.md(?:#[\w-]+)?\)/);
    expect(pages.filter((file) => !linked.includes(file))).toEqual([]);
  });

  it("no program and no template says `npx portico` without a look whether it is installed", () => {
    const sources = /^(?:(?:core|adapters|plugins|client|presets|console)(?:\/[\w-]+)?\/src|presets\/cli\/templates)\//;
    expect(containing(sources, /npx portico/)).toEqual(["presets/cli/src/own-command.ts"]);
  });
});
