// `npm run docs:screenshots` takes the pictures of docs/images, and writes the gallery of all pages to `dist/console-gallery`, with what a
// busy day leaves, made by the demo model. `-- --compare FOLDER` then tells which pictures differ from those of another gallery.
import { mkdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { connectAgent } from "@portico/client";
import type { Page } from "../browser/chromium.ts";
import { findChromium, startChromium } from "../browser/chromium.ts";
import { DESKTOP, openConsole, PHONE } from "../browser/console.ts";
import { takeAgents } from "./agent-conversation.ts";
import { compareGalleries } from "./compare-galleries.ts";
import { takeEditors } from "./editors-and-dialogs.ts";
import { closeDialog, FOLDER, Gallery, type View } from "./gallery.ts";
import { takeMeasurements } from "./measurements-of-a-day.ts";
import { takePlayground } from "./playground-conversation.ts";
import { takeWorkflowEditor } from "./workflow-editor.ts";

const images = resolve(import.meta.dirname, "../../docs/images");
const workflow = (name: string) => readFileSync(resolve(import.meta.dirname, "../../playground/workflows", name), "utf8");
/** Fails at its third order. */
const checkOrders = `
name: Check orders
nodes:
  load:
    type: transform
    name: Load the orders
    with: { value: { orders: [{ id: 1, price: 20 }, { id: 2, price: 35 }, { id: 3 }] } }
  each:
    type: map
    name: Each order
    needs: [load]
    with:
      items: nodes.load.output.orders
      concurrency: 1
      nodes:
        check:
          type: code
          name: Check the price
          with:
            input: \${{ item }}
            source: |
              if (input.price === undefined) throw new Error("Order " + input.id + " has no price")
              return input.price
      result: nodes.check.output
  total: { type: code, name: Add them up, needs: [each], with: { input: "\${{ nodes.each.output }}", source: "return input.length" } }
`;
const save = (name: string) => resolve(images, `${name}.png`);
mkdirSync(images, { recursive: true });

const path = findChromium();
if (path === undefined) throw new Error("No Chromium is found: PORTICO_TEST_CHROMIUM names one");
const browser = await startChromium(path);
const gallery = new Gallery();
try {
  await using opened = await openConsole({
    browser,
    files: {
      "agents/helper/agent.json": { name: "Helper" },
      "agents/broken/agent.json": { name: "Broken", provider: "nobody", model: "none" },
      "agents/triage/agent.json": {
        name: "Triage",
        tools: ["DelegateToAgent"],
        toolPolicy: { tools: { DelegateToAgent: "ask" } },
      },
      "agents/support/agent.json": { name: "Support" },
      ...Object.fromEntries(
        ["deliver.yaml", "digest.yaml", "nightly.yaml", "summarize.yaml", "triage.yaml"].map((name) => [
          `workflows/${name}`,
          workflow(name),
        ]),
      ),
      "workflows/check-orders.yaml": checkOrders,
      "agents/release-notes/agent.json": {
        name: "Release notes",
        tools: ["SendUserMessage"],
        schedules: [{ name: "weekly", cron: "0 9 * * 1", prompt: "Say what changed in the last week." }],
      },
    },
    config: { workflow: { definitionsDir: "workflows", secrets: { TRACKER: "of the tracker", SHOP: "of the shop" } } },
    context: { colorScheme: "light", viewport: DESKTOP },
  });
  const { page, service, token, call } = opened;
  await using client = connectAgent({ baseURL: service.url("agent"), token });
  await client.submit({ agentId: "helper", prompt: "Hello" }).ended;
  await client.submit({ agentId: "broken", prompt: "Summarize the week" }).ended;

  const deploy = {
    promptTemplate: "Version {{version}} was deployed by {{actor}}. Tell us with SendUserMessage what changed: {{changes}}",
    toolIds: ["SendUserMessage"],
  };
  const incident = {
    promptTemplate: "{{service}} is down since {{since}}. Find out why, and tell the people on call.",
    toolIds: ["SendUserMessage", "ReadAttachment", "RunWorkflow"],
    maxTurns: 12,
  };
  const webhooks = "/api/agents/release-notes/webhooks";
  const { secret } = await call("PUT", `${webhooks}/events/deploy.finished`, deploy);
  await call("PUT", `${webhooks}/events/incident`, incident);
  const payload = { version: "2.4.1", actor: "ann", changes: "the login of old accounts, and a faster search." };
  await fetch(`${service.url("agent")}/api/webhook/release-notes`, {
    method: "POST",
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
    body: JSON.stringify({ event: "deploy.finished", payload }),
  });
  const asked = client.submit({ agentId: "release-notes", prompt: "What is in the release of this week?" });
  await asked.ended;
  const { sessionId, runId } = (await asked.started)!;
  await client.submit({ agentId: "release-notes", sessionId, prompt: "Send it to the team with SendUserMessage" }).ended;

  await opened.goTo("Playground");
  await page.getByLabel("Text of message 1").fill("Say hello in one sentence.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("Completed").waitFor();
  await opened.goTo("Overview");
  await page.getByRole("table", { name: "Failures by cause" }).waitFor();
  // Figures and health arrive by themselves.
  await page.getByText("Ready", { exact: true }).nth(1).waitFor();
  await page.getByText(/\d MB/).waitFor();
  await page.screenshot({ path: save("console-overview") });
  await gallery.take(page, { name: "overview", about: "the overview of an instance", page: "" });

  await page.setViewportSize({ ...DESKTOP, height: 1180 });
  await opened.goTo("Workflows");
  await page.getByRole("link", { name: "Triage a ticket" }).click();
  await page.getByRole("button", { name: "Start", exact: true }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("ticket").fill("Since this morning the export ends with an empty file, whatever I choose.");
  await dialog.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.getByLabel("severity").fill("3");
  await page.getByRole("treeitem", { name: /^Sort the ticket/ }).click();
  await page.screenshot({ path: save("console-workflow-run") });
  await gallery.take(page, { name: "workflow-run", about: "a run of a workflow that waits for a person", page: "workflows" });
  // The console would ask about unsaved edits.
  await page.getByLabel("severity").fill("");
  const show = async (address: string, shown: string) => {
    // Whatever was chosen last is not pointed at.
    await page.mouse.move(DESKTOP.width - 1, 0);
    await page.evaluate((hash) => (location.hash = hash), address);
    await page.getByText(shown).first().waitFor();
  };
  await page.setViewportSize(DESKTOP);
  await show("#/workflows/check-orders", "Check orders");
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Start", exact: true }).click();
  await page.getByText("has no price").first().waitFor();
  const failedRun = await page.evaluate(() => location.hash.replace("#/workflows", ""));
  await show("#/runs?of=workflows&since=1d&columns=workflow,status,duration,started,error", "Started: The last day");
  await page.getByRole("cell", { name: "Failed" }).first().waitFor();
  await page.setViewportSize(PHONE);
  await page.getByRole("list", { name: "Filters" }).evaluate((shown) => shown.scrollIntoView());
  await page.screenshot({ path: save("console-lists-phone") });
  await page.setViewportSize(DESKTOP);
  const waiting = client.submit({ agentId: "triage", prompt: "Ask with DelegateToAgent why the export is empty" });
  await show("#/approvals", "expires");
  const shown = (text: string) => (opened: Page) => opened.getByText(text).first().waitFor();
  const press = (name: string) => (opened: Page) => opened.getByRole("button", { name, exact: true }).click();
  const other = (await client.submit({ agentId: "release-notes", prompt: "What is in the release of last week?" }).started)!;
  await show("#/log?kind=message", "A workflow run waits for a person");
  const views: readonly View[] = [
    { name: "approvals", about: "what waits for a person", page: "approvals", path: "", ready: shown("expires") },
    {
      ...{ name: "log", about: "the log of a process", page: "log", path: "?kind=message" },
      ready: shown("A workflow run waits for a person"),
    },
    { name: "webhooks", about: "the webhooks of agents", page: "webhooks", path: "" },
    { name: "webhook", about: "the webhook of an agent", page: "webhooks", path: "/release-notes", ready: shown("1 to 1 of 1") },
    { name: "workflows", about: "the list of workflows", page: "workflows", path: "", ready: shown("Check orders") },
    { name: "workflow", about: "a workflow and its runs", page: "workflows", path: "/triage", ready: shown("Triage a ticket") },
    {
      ...{ name: "workflow-run-failed", about: "a run of a workflow that failed", page: "workflows", path: failedRun },
      ready: shown("has no price"),
    },
    {
      ...{ name: "workflow-run-as-test", about: "a run of a workflow as a test", page: "workflows" },
      ready: press("Open as a test"),
      after: closeDialog,
    },
    { ...{ name: "runs", about: "the runs of agents", page: "runs", path: "" }, ready: shown("runs on this page") },
    {
      ...{ name: "runs-of-workflows", about: "the runs of workflows", page: "runs", path: "?of=workflows" },
      ready: (opened) => opened.getByRole("cell", { name: "Failed" }).first().waitFor(),
    },
    { name: "run", about: "a run of an agent", page: "runs", path: `/${runId}`, ready: shown("The tool answered") },
    {
      ...{ name: "run-comparison", about: "two turns of agents side by side", page: "runs" },
      ready: compareWith(other.runId!, "Compared parts"),
    },
    {
      ...{ name: "webhook-event", about: "an event of a webhook", page: "webhooks", path: "/release-notes" },
      ready: (opened) => opened.getByRole("table", { name: "Events" }).getByRole("link", { name: "deploy.finished" }).click(),
    },
  ];
  for (const view of views) await gallery.take(page, view);
  waiting.abort();
  await waiting.ended;
  await takeAgents(browser, save, gallery);
  await takeMeasurements(browser, save, gallery);
  await takePlayground(browser, gallery);
  await takeWorkflowEditor(browser, save, gallery);
  await takeEditors(browser, gallery);
  await gallery.takeOthers(page);
  await page.reload();
  await page.getByLabel("Instance token").waitFor();
  await gallery.take(page, { name: "sign-in", about: "the page to sign in", page: undefined });
  await gallery.write();
  const { compare } = parseArgs({ options: { compare: { type: "string" } } }).values;
  if (compare !== undefined) process.stdout.write(`${(await compareGalleries(browser, compare, FOLDER)).join("\n")}\n`);
} finally {
  await browser.close();
}

/** Opens the comparison of the run that is shown, and chooses the other run. */
function compareWith(otherId: string, table: string): (page: Page) => Promise<void> {
  return async (page) => {
    await page.getByRole("link", { name: "Compare" }).click();
    await page.getByLabel("The other run").selectOption(otherId);
    await page.getByRole("table", { name: table }).waitFor();
  };
}
