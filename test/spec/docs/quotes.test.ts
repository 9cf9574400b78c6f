import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { readText, root } from "../../rooms/repository.ts";
import { type Block, readPages } from "./pages.ts";

let blocks: Block[];
beforeAll(async () => {
  blocks = (await readPages()).flatMap((page) => page.blocks);
});

describe("code in the pages", () => {
  it("that is marked as a whole file is that file", async () => {
    const quoted = blocks.filter(({ mark }) => mark?.kind === "whole");
    expect(quoted.length).toBeGreaterThan(3);
    for (const { file, text, mark } of quoted) expect(text, `${file}: ${mark!.of}`).toBe(await readText(mark!.of));
  });

  it("each block that is marked as a part of a file occurs in that file", async () => {
    const quoted = blocks.filter(({ mark }) => mark?.kind === "from");
    expect(quoted.length).toBeGreaterThan(10);
    const strange: string[] = [];
    for (const { file, line, text, mark } of quoted) {
      const source = await readText(mark!.of);
      if (![0, 2, 4, 6, 8].some((depth) => source.includes(indented(text, depth))))
        strange.push(`${file}:${line}: ${mark!.of}\n${text}`);
    }
    expect(strange).toEqual([]);
  });

  it("shows every story of the playground", () => {
    const shown = new Set(blocks.map(({ mark }) => mark?.of));
    const stories = ["", "stripe/"].flatMap((folder) =>
      readdirSync(resolve(root, "playground", folder))
        .filter((file) => /^(?:embed-|forward-|mcp-|own-|third-).*\.ts$/.test(file))
        .map((file) => `${folder}${file}`),
    );
    expect(stories.length).toBeGreaterThan(5);
    const clients = readdirSync(resolve(root, "playground/clients")).map((file) => `clients/${file}`);
    expect([...stories, ...clients].filter((story) => !shown.has(`playground/${story}`))).toEqual([]);
    const workflows = readdirSync(resolve(root, "playground/workflows")).filter((file) => file.endsWith(".yaml"));
    expect(workflows.length).toBeGreaterThan(5);
    expect(workflows.filter((file) => !shown.has(`playground/workflows/${file}`))).toEqual([]);
  });
});

/** A piece is quoted from the margin, wherever it stands in its file. */
function indented(text: string, depth: number): string {
  return text.replaceAll(/^(?=.)/gm, " ".repeat(depth));
}
