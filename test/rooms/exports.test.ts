import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { PUBLISHED_ROOMS } from "../../release/workspaces.ts";
import { exportedNames } from "./exported-names.ts";
import { root } from "./repository.ts";

const read = (file: string) => readFileSync(resolve(root, file), "utf8");

/** The modules that a package exports. `*` stands for a folder, too: of adapters, the first is a port and the second a technology. */
function modulesOf(room: string): string[] {
  const { exports } = JSON.parse(read(`${room}/package.json`)) as { exports: Readonly<Record<string, string>> };
  const targets = Object.values(exports).filter((target) => target.endsWith(".ts"));
  const files = targets.flatMap((target) => globSync(join(room, target).replace("*", "{*,*/*}"), { cwd: root }));
  return [...new Set(files)].filter((file) => !file.endsWith(".test.ts"));
}

describe("the reader of exports", () => {
  it("finds every kind of declaration, follows what is passed on, and sees doc comments", () => {
    const files: Readonly<Record<string, string>> = {
      "a/index.ts": [
        'export { type B, c as d } from "./b.ts";',
        'export * from "./e.ts";',
        'export * as all from "./e.ts";',
        'export { gone } from "./b.ts";',
        'export { z } from "zod";',
        "/** Said. */",
        "export async function f(): Promise<void> {}",
        "export class G {}",
      ].join("\n"),
      "a/b.ts": "/** Said. */\nexport interface B {}\n\nexport const c = 1;",
      "a/e.ts": [
        "/**",
        " * Said.",
        " */",
        "export function e(one: string): void;",
        "export function e(): void {}",
        "// No doc comment.",
        "export type H = string;",
      ].join("\n"),
    };
    const found = exportedNames("a/index.ts", (file) => files[file]!);
    expect(Object.fromEntries(found.map(({ name, file, isDocumented }) => [name, `${file} ${isDocumented}`]))).toEqual({
      ...{ B: "a/b.ts true", d: "a/b.ts false", gone: "a/index.ts false", f: "a/index.ts true", G: "a/index.ts false" },
      ...{ e: "a/e.ts true", H: "a/e.ts false", "all.e": "a/e.ts true", "all.H": "a/e.ts false" },
    });
  });
});

describe.each(PUBLISHED_ROOMS)("every name that %s exports", (room) => {
  it("has a doc comment", () => {
    const names = modulesOf(room).flatMap((file) => exportedNames(file, read));
    expect(names.length).toBeGreaterThan(1);
    const bare = names.filter(({ isDocumented }) => !isDocumented).map(({ name, file, line }) => `${name} (${file}:${line})`);
    expect([...new Set(bare)]).toEqual([]);
  });
});
