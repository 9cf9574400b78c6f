import { expect, it } from "vitest";
import { withEventReference } from "../../../release/references/events.ts";
import { readText } from "../../rooms/repository.ts";

it("docs/api.md lists every event as the contracts have it: `npm run docs:api` brings it up to date", async () => {
  const page = await readText("docs/api.md");
  expect(page).toContain("| `query:message` | to the client |");
  expect(page).toBe(await withEventReference(page));
  await expect(withEventReference("a page without marks")).rejects.toThrow("lacks the marks");
});
