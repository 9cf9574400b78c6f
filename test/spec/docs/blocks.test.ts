import { beforeAll, describe, expect, it } from "vitest";
import { faultOf } from "./block-fault.ts";
import { type Block, readPages, toPage } from "./pages.ts";
import { readers } from "./readers.ts";
import { isRun } from "./run-page.ts";

let blocks: Block[];
beforeAll(async () => {
  blocks = (await readPages()).flatMap((page) => page.blocks);
});

const toldOf = async ({ file, line, ...block }: Block) => {
  const fault = await faultOf({ file, line, ...block });
  return fault === undefined ? [] : [`${file}:${line}: ${fault}`];
};

describe("every block of code in the pages", () => {
  it("is run, read or compared by a test", async () => {
    expect(blocks.length).toBeGreaterThan(80);
    expect((await Promise.all(blocks.map(toldOf))).flat()).toEqual([]);
  });

  it("that is for a shell belongs to a page that has one", () => {
    const pages = new Set(blocks.filter((block) => isRun(block) || block.mark?.kind === "printed by").map(({ file }) => file));
    expect(Object.keys(readers).filter((file) => !pages.has(file))).toEqual([]);
  });

  it.each([
    ["TypeScript that is quoted from nowhere", "```ts\nconst a = 1;\n```", "PAGE.md:2: no test runs it"],
    ["a piece of a file that nothing runs", "<!-- from docs/x.ts -->\n```ts\n```", "PAGE.md:3: nothing runs docs/x.ts"],
    ["a file that is gone", "<!-- playground/gone.ts -->\n```ts\n```", "PAGE.md:3: there is no playground/gone.ts"],
    ["commands on a page without a reader", "```sh\ncurl x\n```", "PAGE.md:2: nobody runs it"],
    ["npm that does something else", "```sh\nnpm install x\n```", "PAGE.md:2: nobody runs it"],
    ["npm before another command", "```sh\nnpm ci && curl x # soon\n```", "PAGE.md:2: nobody runs it"],
    ["npm beside other commands", "```sh\nnpm ci\ncurl x\n```", "PAGE.md:2: nobody runs it"],
    ["a block without a word", "```\nportico start\n```", 'PAGE.md:2: "" is no kind of block'],
    ["a word that is none", "~~~toString\n~~~", 'PAGE.md:2: "toString" is no kind of block'],
    ["a block in a list", "- one\n\n  ```bash\n  x\n  ```", 'PAGE.md:4: "bash" is no kind of block'],
    ["a block by indentation", "one\n\n    x\n", 'PAGE.md:3: "" is no kind of block'],
    ["a command in what is printed", "```text\n$ ls\n```", "PAGE.md:2: it holds a command"],
    ["a usage with something else in it", "```usage\nportico start\nls\n```", "PAGE.md:2: each of its lines is a command"],
    ["data without a place", "```json\n{}\n```", "PAGE.md:2: nothing reads it"],
    [
      "data in a place that is none",
      "<!-- into notes.json -->\n```json\n{}\n```",
      "PAGE.md:3: no service reads a file notes.json",
    ],
    [
      "a setting that is none",
      "<!-- into portico.config.yaml -->\n```yaml\nproxi: 1\n```",
      "PAGE.md:3: proxi: expected no such key",
    ],
    ["a workflow that is broken", "<!-- into workflows/a.yaml -->\n```yaml\nnodes: {}\n```", "PAGE.md:3: 1:8: "],
    [
      "an agent with a field that is none",
      '<!-- into agents/a/agent.json -->\n```json\n{"name":"A","tool":[]}\n```',
      "PAGE.md:3: nothing reads tool",
    ],
    [
      "an answer that no route gives",
      "<!-- answer of GET /api/none -->\n```json\n{}\n```",
      "PAGE.md:3: no route GET /api/none answers JSON",
    ],
    [
      "an answer with more than it has",
      '<!-- answer of GET /healthz -->\n```json\n{"status":"alive","a":1}\n```',
      "PAGE.md:3: GET /healthz does not answer all of that",
    ],
    ["an answer that is none", '<!-- answer of GET /healthz -->\n```json\n{"status":"well"}\n```', "PAGE.md:3: Invalid type"],
    [
      "a block of a test that is gone",
      "<!-- run by test/gone.test.ts -->\n```nginx\n```",
      "PAGE.md:3: there is no test test/gone.test.ts",
    ],
    [
      "a block of a test that never heard of it",
      "<!-- run by test/spec/docs/nginx.test.ts -->\n```nginx\n```",
      "PAGE.md:3: test/spec/docs/nginx.test.ts says nothing",
    ],
    [
      "a print that nobody compares",
      "<!-- printed by portico start --json -->\n```json\n{}\n```",
      "PAGE.md:3: nobody compares it",
    ],
  ])("is refused otherwise: %s", async (_what, text, told) => {
    const [block] = toPage("PAGE.md", text).blocks;
    expect((await toldOf(block!)).join()).toContain(told);
  });
});
