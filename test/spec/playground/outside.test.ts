import { copyFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join, posix, resolve } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { failures, type OutsideWorkspace, outsideWorkspace, runTests } from "../../harness/outside-workspace.ts";
import { importsOf, packageOf, readText, root } from "../../rooms/repository.ts";

const conforming = readdirSync(resolve(root, "playground")).filter((file) => file.endsWith(".test.ts"));

/** Files of the playground that these import, themselves included, and the packages that all of them import. */
async function neededBy(files: readonly string[]) {
  const sources = new Set<string>();
  const packages = new Set<string>();
  const visit = async (file: string) => {
    if (sources.has(file)) return;
    sources.add(file);
    for (const { target } of importsOf(file, await readText(`playground/${file}`))) {
      if (target.startsWith(".")) await visit(posix.join(posix.dirname(file), target));
      const name = packageOf(target);
      if (name !== undefined) packages.add(name);
    }
  };
  for (const file of files) await visit(file);
  return { sources, packages };
}

let outside: OutsideWorkspace;
beforeAll(async () => {
  const { sources, packages } = await neededBy(conforming);
  outside = outsideWorkspace([...packages, "vitest", "typescript", "@types/node"]);
  for (const file of sources) copyFileSync(resolve(root, "playground", file), join(outside.path, file));
  const { compilerOptions } = JSON.parse(await readText("tsconfig.base.json")) as { compilerOptions: object };
  writeFileSync(join(outside.path, "package.json"), JSON.stringify({ name: "third-party", private: true, type: "module" }));
  writeFileSync(join(outside.path, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }));
});
afterAll(() => outside.remove());

it("a third party's plugin, provider, storage, tools and identities pass the published suites outside the workspace", async () => {
  const files = await runTests(outside);
  expect(failures(files)).toEqual([]);
  expect(files.map(({ name }) => basename(name)).toSorted()).toEqual(conforming.toSorted());
  for (const { name, assertionResults } of files) {
    expect(assertionResults.filter(({ status }) => status === "passed").length, name).toBeGreaterThan(10);
  }
}, 300_000);

it("and compile there", async () => {
  const { code, stdout } = await outside.run("typescript/bin/tsc", ["-p", "."]);
  expect([code, stdout]).toEqual([0, ""]);
}, 120_000);
