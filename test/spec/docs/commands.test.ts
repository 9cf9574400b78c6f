import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../../harness/portico-process.ts";
import { readText, root } from "../../rooms/repository.ts";
import { type Page, readPages } from "./pages.ts";
import { faultsOfUsage } from "./usage.ts";

interface Command {
  readonly file: string;
  /** `token issue`: the words before the first flag or placeholder. */
  readonly words: readonly string[];
  readonly flags: readonly string[];
}

let pages: Page[];
let commands: Command[];
/** What `--help` prints, by the words of a command. */
const helps = new Map<string, Awaited<ReturnType<typeof runCommand>>>();
beforeAll(async () => {
  pages = await readPages();
  commands = pages.flatMap(commandsOf);
  // One after another, they share a process: most of what each takes is to load the command line.
  for (const name of new Set(commands.map(({ words }) => words.join(" "))))
    helps.set(name, await runCommand([...name.split(" "), "--help"]));
}, 60_000);

describe("commands in the pages", () => {
  it("are commands of portico, with flags that their help names", () => {
    expect(commands.length).toBeGreaterThan(15);
    const broken = commands.filter(({ words, flags }) => {
      const help = helps.get(words.join(" "))!;
      return help.code !== 0 || flags.some((flag) => !help.stdout.includes(flag));
    });
    expect(broken).toEqual([]);
  });

  it("take what usage blocks say, and nothing that those leave out", () => {
    const blocks = pages.flatMap((page) => page.blocks).filter(({ language }) => language === "usage");
    expect(blocks.length).toBeGreaterThan(2);
    const helpOf = (words: string) => helps.get(words)?.stdout ?? "";
    expect(
      blocks.flatMap(({ file, line, text }) => faultsOfUsage(text, helpOf).map((fault) => `${file}:${line}: ${fault}`)),
    ).toEqual([]);
  });

  it.each([
    [
      "portico a [--two]",
      [
        "portico a: --one is needed, and not said",
        "portico a: --two has a value, and is said without",
        "portico a: nobody says --one, --three",
        "portico a: 1 words are needed, and 0 said",
      ],
    ],
    ["portico a FILE [--one ID] [--two TEXT] [--three]   does it", ["portico a: --one is needed, and said in brackets"]],
    ["portico a FILE --one ID --four", ["portico a: there is no --four", "portico a: nobody says --two, --three"]],
    ["portico a FILE --one ID --two TEXT\nportico a FILE --one ID --three [--config FILE]", []],
  ])("are compared flag by flag: %s", (text, faults) => {
    const help = [
      "USAGE portico a [OPTIONS] --one=<id> <FILES>",
      "  FILES=<file…>    The files (Required)",
      "        --one=<id>    One (Required)",
      "      --two=<text>    Two",
      "           --three    Three",
      "   --config=<file>    The file",
    ].join("\n");
    expect(faultsOfUsage(text, () => help).toSorted()).toEqual(faults.toSorted());
  });

  it("of npm are scripts that there are", async () => {
    const { scripts } = JSON.parse(await readText("package.json")) as { scripts: Record<string, string> };
    const named = pages.flatMap((page) =>
      codeOf(page).flatMap((code) => [...code.matchAll(/npm run ([\w:]+)/g)].map(([, name]) => name!)),
    );
    expect(named).toContain("check");
    expect([...new Set(named)].filter((name) => !(name in scripts))).toEqual([]);
  });

  it("of node run files that there are", () => {
    const named = pages.flatMap((page) => {
      const created = page.blocks.flatMap(({ mark }) => (mark?.kind === "into" ? [mark.of] : []));
      const run = codeOf(page).flatMap((code) => [...code.matchAll(/npx node (\S+)/g)].map(([, name]) => name!));
      return run.filter((name) => !created.includes(name));
    });
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((name) => !existsSync(resolve(root, name)))).toEqual([]);
  });
});

/** Code in a line and shell blocks: what a reader would type. */
function codeOf(page: Page): string[] {
  const shell = page.blocks.filter(({ language }) => language === "usage" || language === "sh");
  return [
    ...shell.flatMap(({ text }) => text.split("\n")),
    ...[...page.prose.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code),
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
