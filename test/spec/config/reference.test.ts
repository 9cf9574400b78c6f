import { expect, it } from "vitest";
import { settingsReference } from "../../../release/references/reference/settings.ts";

it("every environment variable sets one key", () => {
  const variables = [...settingsReference().matchAll(/\| `([A-Z_]+)` \|$/gm)].map(([, name]) => name);

  expect(variables.length).toBeGreaterThan(20);
  expect(new Set(variables).size).toBe(variables.length);
});
