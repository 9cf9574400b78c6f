import { homedir } from "node:os";
import { beforeAll, describe, expect, it } from "vitest";
import { PUBLISHED_ROOMS } from "../../release/workspaces.ts";
import { commentLines, hardPhrases, proseLines } from "./hard-phrases.ts";
import { readText, repositoryFiles, root } from "./repository.ts";

// Written in pieces, so that this file is not the first to be found.
const registryHosts = [
  ["registry", "npmjs", "org"],
  ["registry", "yarnpkg", "com"],
  ["npm", "pkg", "github", "com"],
].map((parts) => parts.join("."));
const focused = new RegExp(["\\b(?:describe|it|test|suite|bench)\\.o", "nly\\b|\\bf(?:describe|it)\\("].join(""));

let texts: Map<string, string>;
beforeAll(async () => {
  const files = (await repositoryFiles()).filter((file) => !/\.(?:png|jpe?g|gif|webp|woff2?|ico|db|gz|sqlite)$/.test(file));
  texts = new Map(await Promise.all(files.map(async (file) => [file, await readText(file)] as const)));
});

describe("no text of the repository", () => {
  const containing = (word: string | RegExp) =>
    [...texts].filter(([, text]) => (typeof word === "string" ? text.includes(word) : word.test(text))).map(([file]) => file);

  it("names a registry", () => {
    expect(registryHosts.flatMap(containing)).toEqual([]);
  });

  it("holds a path of the machine that it was written on", () => {
    expect(containing(`${root}/`)).toEqual([]);
    // A home directory as short as `/` would be in every text.
    if (homedir().length > 3) expect(containing(`${homedir()}/`)).toEqual([]);
    expect(containing(/["'`(\s](?:\/home\/|\/Users\/|[A-Z]:\\Users\\)\w/)).toEqual([]);
  });

  it("is a test that silences all others", () => {
    expect(containing(focused)).toEqual([]);
    expect(focused.test(["it.o", 'nly("x")'].join(""))).toBe(true);
  });

  it("holds a mark of a merge that was not resolved", () => {
    const marks = /^(?:<{7}|>{7})(?: |$)/m;
    expect(containing(marks)).toEqual([]);
    expect(marks.test(`kept\n${"<".repeat(7)} HEAD\n`)).toBe(true);
  });

  it("takes arrays as objects, as `v.record` of valibot does: `record` and `jsonObject` of core do not", () => {
    const bare = new RegExp(["\\bv\\.re", "cord\\("].join(""));
    const inSources = containing(bare).filter((file) =>
      /^(?:core|adapters|plugins|client|presets)(?:\/[\w-]+)?\/src\//.test(file),
    );
    expect(inSources).toEqual(["core/src/kit/json-object.ts"]);
  });

  it("has a line that says what is still to be done", () => {
    expect(containing(new RegExp(["\\b(?:TO", "DO|FIX", "ME)\\b"].join("")))).toEqual([]);
  });
});

/** The texts that are written in plain words (CONTRIBUTING.md), and how their prose is found. */
const plainRooms: readonly { readonly files: RegExp; prose(text: string): readonly string[] }[] = [
  { files: /^(?:README|CONTRIBUTING)\.md$/, prose: proseLines },
  { files: /^docs\/.*\.md$/, prose: proseLines },
  { files: /^\.changeset\/.*\.md$/, prose: proseLines },
  { files: /^(?:core|adapters|plugins|client|presets|playground|test)\/.*\.md$/, prose: proseLines },
  {
    files: /^(?:plugins\/(?:operator\/)?src|presets\/(?:cli\/)?(?:src|templates)|console\/src)\/.*\.(?:ts|svelte|css)$/,
    prose: (text) => text.split("\n"),
  },
  { files: /^(?:(?:core|adapters(?:\/[\w-]+)?|client)\/src|release|playground|test)\/.*\.[cm]?[jt]sx?$/, prose: commentLines },
];

describe("plain words", () => {
  const hardLines = (lines: readonly string[]) =>
    lines.flatMap((line, index) =>
      hardPhrases
        .filter(({ phrase }) => phrase.test(line))
        .map(({ phrase, better }) => `${index + 1}: "${phrase.exec(line)![0]}" (better: ${better})`),
    );

  it.each(plainRooms)("are in $files", ({ files, prose }) => {
    const pages = [...texts].filter(([file]) => files.test(file));
    expect(pages).not.toEqual([]);
    expect(pages.flatMap(([file, text]) => hardLines(prose(text)).map((line) => `${file}:${line}`))).toEqual([]);
  });

  it("are missed by every phrase of the list, but in code", () => {
    const hard =
      "Whoever calls\nNobody is there\nA name that is none\nas ever\nThe run is over\nIt is over 90 bytes\nThis is no JSON";
    expect(hardLines(proseLines(hard)).map((line) => Number.parseInt(line, 10))).toEqual([1, 2, 3, 4, 5, 7]);
    expect(hardLines(proseLines("the value `as ever`\n```ts\n// nobody\n```"))).toEqual([]);
    const code = ["/** Whoever */", " * nobody", "const nobody = 1;\t// as ever", "const nobody = `// nobody`;", "// `nobody`"];
    expect(hardLines(commentLines(code.join("\n"))).map((line) => Number.parseInt(line, 10))).toEqual([1, 2, 3]);
  });
});

describe("the lockfile", () => {
  it("names no host: whoever installs decides where packages come from", () => {
    const { packages } = JSON.parse(texts.get("package-lock.json")!) as { packages: Record<string, { resolved?: string }> };
    expect(Object.keys(packages).length).toBeGreaterThan(50);
    expect(Object.values(packages).filter(({ resolved }) => resolved !== undefined && /^(?:\w+:)?\/\//.test(resolved))).toEqual(
      [],
    );
  });
});

describe("the packages", () => {
  const rooms = PUBLISHED_ROOMS.filter((room) => room !== "test");

  it("carry one version, one license and one minimum of Node", () => {
    const [first, ...others] = rooms.map((room) => {
      const { version, license, engines, type } = JSON.parse(texts.get(`${room}/package.json`)!) as Record<string, unknown>;
      return { version, license, engines, type };
    });
    for (const other of others) expect(other).toEqual(first);
  });

  it("export files that are there", () => {
    const missing = rooms.flatMap((room) => {
      const { exports } = JSON.parse(texts.get(`${room}/package.json`)!) as { exports: Record<string, string> };
      return Object.values(exports)
        .map((target) => `${room}/${target.replace("./", "")}`)
        .filter((target) => {
          const pattern = new RegExp(`^${target.replaceAll(".", "\\.").replaceAll("*", ".+")}$`);
          return ![...texts.keys()].some((file) => pattern.test(file));
        });
    });
    expect(missing).toEqual([]);
  });
});
