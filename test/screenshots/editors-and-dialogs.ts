import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser } from "../browser/chromium.ts";
import { openConsole } from "../browser/console.ts";
import { closeDialog, type Gallery } from "./gallery.ts";

const triage = readFileSync(resolve(import.meta.dirname, "../../playground/workflows/triage.yaml"), "utf8");
const dispatcher = `{
  "name": "Dispatcher",
  "description": "Watches orders and shipments, and says what is late.",
  "instructions": "Be brief. Name each order by its number.",
  "tools": ["SendUserMessage", "ReadAttachment"]
}
`;

/** Pictures of the editor of agents, and of the dialogs that create, save and meet a conflict. */
export async function takeEditors(browser: Browser, gallery: Gallery): Promise<void> {
  await using opened = await openConsole({
    browser,
    files: { "agents/dispatcher/agent.json": dispatcher, "workflows/triage.yaml": triage },
    config: { workflow: { definitionsDir: "workflows", editable: true, secrets: { TRACKER: "of the tracker" } } },
    context: { colorScheme: "light" },
  });
  const { page, service } = opened;
  const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
  await opened.goTo("Agents");
  await gallery.take(page, {
    ...{ name: "new-agent", about: "the dialog of a new agent", page: "agents" },
    ready: () => press("New agent"),
    after: closeDialog,
  });
  await gallery.take(page, {
    ...{ name: "agent-editor", about: "the editor of an agent", page: "agents", path: "/dispatcher/edit" },
    async ready() {
      await page.getByRole("tab", { name: "Form" }).click();
      await page.getByLabel("Instructions (optional)").fill("Be brief. Name each order by its number, and its customer.");
    },
  });
  await gallery.take(page, {
    ...{ name: "agent-changes", about: "the changes of an agent before they are saved", page: "agents" },
    ready: () => press("Save"),
  });
  await gallery.take(page, {
    ...{ name: "agent-conflict", about: "an agent whose file was changed meanwhile", page: "agents" },
    async ready() {
      writeFileSync(join(service.cwd, "agents/dispatcher/agent.json"), dispatcher.replace("Be brief.", "Be friendly."));
      await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
      await page.getByRole("dialog", { name: "The agent was changed meanwhile" }).waitFor();
    },
    after: () => press("Use the stored text"),
  });
  await opened.goTo("Workflows");
  await gallery.take(page, {
    ...{ name: "new-workflow", about: "the dialog of a new workflow", page: "workflows" },
    ready: () => press("New workflow"),
    after: closeDialog,
  });
}
