import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { readText, root } from "../../rooms/repository.ts";
import type { Block } from "./pages.ts";
import { readAsClient, readAsService } from "./read-as-service.ts";
import { readers } from "./readers.ts";
import { isRun } from "./run-page.ts";

/** By the word behind a block's fence: what is wrong with it, and how a page is mended. */
const kinds: Readonly<Record<string, (block: Block) => Promise<string | undefined> | string | undefined>> = {
  ts: (block) =>
    isCreated(block)
      ? undefined
      : faultOfQuote(block, /^(?:core|adapters|plugins|client|presets|playground|test|release)\/.*\.ts$/),
  diff: (block) =>
    isCreated(block)
      ? undefined
      : "nothing applies it: only pages that create a service have changes of its files (test/spec/docs/readers.ts)",
  yaml: (block) => faultOfData(block),
  json: (block) => faultOfData(block),
  sh: (block) =>
    !isRun(block) || block.file in readers ? undefined : "nobody runs it: give the page a reader in test/spec/docs/readers.ts",
  usage: ({ text }) =>
    text.split("\n").every((line) => line === "" || /^portico [a-z]/.test(line))
      ? undefined
      : "each of its lines is a command of portico with what it takes, as its --help tells it",
  // `test/spec/docs/site.test.ts` draws each picture in a browser.
  mermaid: () => undefined,
  text: ({ text }) =>
    /^(?:\$ |npx |npm |node |portico |curl |git )/m.test(text)
      ? "it holds a command: call it sh, or usage where it says what a command takes"
      : undefined,
};

/** A file that the reader of the page writes, and that is then run. */
function isCreated({ mark, file }: Block): boolean {
  return mark?.kind === "into" && readers[file]?.creates !== undefined;
}

/** What is wrong with a block, and how to mend it; undefined for a block that some test runs, reads or compares. */
export async function faultOf(block: Block): Promise<string | undefined> {
  if (block.mark?.kind === "run by") return faultOfTest(block.mark.of, block.file);
  const kind = Object.hasOwn(kinds, block.language) ? kinds[block.language] : undefined;
  if (!kind)
    return `"${block.language}" is no kind of block: ${Object.keys(kinds).join(", ")} are (text for drawings and for what is printed); or a test of its own runs it: <!-- run by test/spec/docs/NAME.test.ts -->`;
  return kind(block);
}

async function faultOfQuote({ mark, text }: Block, files: RegExp): Promise<string | undefined> {
  if (mark?.kind !== "whole" && mark?.kind !== "from")
    return "no test runs it: quote it from a story of the playground or from a test, with <!-- from playground/STORY.ts --> on the line before (without `from`: the whole file)";
  if (!files.test(mark.of)) return `nothing runs ${mark.of}: quote a story of the playground or a test`;
  if (!existsSync(resolve(root, mark.of))) return `there is no ${mark.of}`;
  return mark.of.endsWith("portico.config.ts") ? readAsService(mark.of, text) : undefined;
}

/** A test that runs a page's block reads the page. */
async function faultOfTest(test: string, page: string): Promise<string | undefined> {
  if (!test.endsWith(".test.ts") || !existsSync(resolve(root, test))) return `there is no test ${test}`;
  return (await readText(test)).includes(page) ? undefined : `${test} says nothing of this page`;
}

async function faultOfData(block: Block): Promise<string | undefined> {
  const { mark, text, file } = block;
  switch (mark?.kind) {
    case "into":
      return readAsService(mark.of, text);
    case "answer of":
      return readAsClient(mark.of, text);
    case "printed by":
      return file in readers ? undefined : "nobody compares it: give the page a reader in test/spec/docs/readers.ts";
    case "whole":
    case "from":
      return faultOfQuote(block, /^playground\/workflows\/.*\.yaml$/);
    default:
      return "nothing reads it: say which file it is, with <!-- into portico.config.yaml --> on the line before (or workflows/ID.yaml, agents/ID/agent.json), or where it comes from, with <!-- printed by COMMAND --> or <!-- answer of GET /api/PATH -->";
  }
}
