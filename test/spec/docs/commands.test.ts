import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { runPortico } from "../../harness/portico-process.ts";
import { readText, root } from "../../rooms/repository.ts";
import { blocksOf, type Page, proseOf, readPages } from "./pages.ts";

interface Command {
  readonly file: string;
  /** `token issue`: the words before the first flag or placeholder. */
  readonly words: readonly string[];
  readonly flags: readonly string[];
}

let pages: Page[];
let commands: Command[];
beforeAll(async () => {
  pages = await readPages();
  commands = pages.flatMap(commandsOf);
});

describe("commands in the pages", () => {
  it("are commands of portico, with flags that their help names", async () => {
    expect(commands.length).toBeGreaterThan(15);
    const helps = new Map<string, Awaited<ReturnType<typeof runPortico>>>();
    for (const name of new Set(commands.map(({ words }) => words.join(" ")))) {
      helps.set(name, await runPortico([...name.split(" "), "--help"]));
    }
    const broken = commands.filter(({ words, flags }) => {
      const help = helps.get(words.join(" "))!;
      return help.code !== 0 || flags.some((flag) => !help.stdout.includes(flag));
    });
    expect(broken).toEqual([]);
  });

  it("of npm run are scripts that there are", async () => {
    const { scripts } = JSON.parse(await readText("package.json")) as { scripts: Record<string, string> };
    const named = pages.flatMap((page) =>
      codeOf(page).flatMap((code) => [...code.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!)),
    );
    expect(named).toContain("check");
    expect([...new Set(named)].filter((name) => !(name in scripts))).toEqual([]);
  });

  it("of node run files that there are", () => {
    const named = pages.flatMap((page) =>
      codeOf(page).flatMap((code) => [...code.matchAll(/npx node (\S+)/g)].map(([, name]) => name!)),
    );
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((name) => !existsSync(resolve(root, name)))).toEqual([]);
  });
});

/** Code in a line and shell blocks: what a reader would type. */
function codeOf(page: Page): string[] {
  const shell = blocksOf(page).filter(({ language }) => language === "" || language === "sh");
  return [
    ...shell.flatMap(({ text }) => text.split("\n")),
    ...[...proseOf(page).matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code),
  ];
}

function commandsOf(page: Page): Command[] {
  const lines = codeOf(page).flatMap((code) => /(?:^|\(|\bnpx )portico ([a-z].*)/.exec(code.trim())?.[1] ?? []);
  const started = codeOf(page).flatMap((code) => /npm start(?: --silent)? -- (.*)/.exec(code)?.[1] ?? []);
  return [...lines, ...started.map((flags) => `start ${flags}`)].map((line) => {
    const said = line.split(/ {2,}|[#…)]/)[0]!.split(" ");
    const end = said.findIndex((word) => !/^[a-z]+$/.test(word));
    return { file: page.file, words: end < 0 ? said : said.slice(0, end), flags: line.match(/--[a-z][a-z-]*/g) ?? [] };
  });
}
