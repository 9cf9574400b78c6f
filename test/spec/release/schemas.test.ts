import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../../rooms/repository.ts";

const NAMES = ["agent", "log-line", "workflow-definition"];
const read = (path: string) => readFileSync(join(root, path), "utf8");

it.each(NAMES)("the package portico contains the published schema of %s, for editors", (name) => {
  const { files, exports } = JSON.parse(read("presets/cli/package.json")) as { files: string[]; exports: Record<string, string> };
  expect(files).toContain("schemas");
  expect(exports["./schemas/*"]).toBe("./schemas/*");
  // npm run docs:agent, docs:log and docs:workflow write both.
  expect(read(`presets/cli/schemas/${name}.schema.json`)).toBe(read(`docs/${name}.schema.json`));
});

it("each published schema has its own stable $id", () => {
  const ids = NAMES.map((name) => (JSON.parse(read(`presets/cli/schemas/${name}.schema.json`)) as { $id: string }).$id);
  expect(ids).toEqual(NAMES.map((name) => `urn:portico:${name}`));
});
