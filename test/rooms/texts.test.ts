import { homedir } from "node:os";
import { beforeAll, describe, expect, it } from "vitest";
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
  const files = (await repositoryFiles()).filter((file) => !/\.(?:png|jpe?g|gif|webp|woff2?|ico|db|gz)$/.test(file));
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

  it("has a line that says what is still to be done", () => {
    expect(containing(new RegExp(["\\b(?:TO", "DO|FIX", "ME)\\b"].join("")))).toEqual([]);
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
  const rooms = ["core", "adapters", "plugins", "client", "presets"];

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
