import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { withReference } from "../../../release/references/settings.ts";

const page = readFileSync(join(import.meta.dirname, "../../../docs/configuration.md"), "utf8");

it("docs/configuration.md has the keys of the schema as it is now (npm run docs:config)", () => {
  expect(withReference(page)).toBe(page);
});

it("every environment variable sets one key", () => {
  const variables = [...page.matchAll(/\| `([A-Z_]+)` \|$/gm)].map(([, name]) => name);

  expect(variables.length).toBeGreaterThan(20);
  expect(new Set(variables).size).toBe(variables.length);
});
