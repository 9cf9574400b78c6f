// The pictures in docs/images, taken anew: `npm run docs:screenshots`. With what a busy day leaves, made by the demo model.
import { mkdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { connectAgent } from "@portico/client";
import { findChromium, startChromium } from "../harness/chromium.ts";
import { DESKTOP, openConsole, PHONE } from "../harness/console.ts";

const images = resolve(import.meta.dirname, "../../docs/images");
const workflow = (name: string) => readFileSync(resolve(import.meta.dirname, "../../playground/workflows", name), "utf8");
mkdirSync(images, { recursive: true });

const path = findChromium();
if (path === undefined) throw new Error("No Chromium is found: PORTICO_TEST_CHROMIUM names one");
const browser = await startChromium(path);
try {
  await using opened = await openConsole({
    browser,
    files: {
      "agents/helper/agent.json": { name: "Helper" },
      "agents/broken/agent.json": { name: "Broken", provider: "nobody", model: "none" },
      "agents/support/agent.json": { name: "Support" },
      ...Object.fromEntries(
        ["deliver.yaml", "digest.yaml", "summarize.yaml", "triage.yaml"].map((name) => [`workflows/${name}`, workflow(name)]),
      ),
    },
    config: { workflow: { definitionsDir: "workflows", secrets: { TRACKER: "of the tracker", SHOP: "of the shop" } } },
    context: { colorScheme: "light", viewport: DESKTOP },
  });
  const { page, service, token } = opened;
  await using client = connectAgent({ baseURL: service.url("agent"), token });
  await client.submit({ agentId: "helper", prompt: "Hello" }).ended;
  await client.submit({ agentId: "broken", prompt: "Summarize the week" }).ended;

  await opened.goTo("Providers");
  for (const protocol of ["Messages", "Chat Completions"]) {
    await page.getByRole("tab", { name: protocol }).click();
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Completed").waitFor();
  }
  const take = async (name: string) => {
    // Figures and health arrive by themselves.
    await page.getByText("Ready", { exact: true }).nth(1).waitFor();
    await page.getByText(/\d MB/).waitFor();
    await page.screenshot({ path: resolve(images, `${name}.png`) });
  };
  await opened.goTo("Overview");
  await page.getByRole("table", { name: "Failed runs" }).waitFor();
  await take("console-overview");
  await page.setViewportSize(PHONE);
  await take("console-overview-phone");

  await page.setViewportSize({ ...DESKTOP, height: 1180 });
  await opened.goTo("Workflows");
  const { workflowServiceToken } = JSON.parse(service.read("credentials.json")) as { readonly workflowServiceToken: string };
  await page.getByLabel("Workflow service token").fill(workflowServiceToken);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("link", { name: "Triage a ticket" }).click();
  await page.getByRole("button", { name: "Start" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("ticket").fill("Since this morning the export ends with an empty file, whatever I choose.");
  await dialog.getByRole("button", { name: "Start" }).click();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.getByLabel("severity").fill("3");
  await page
    .getByRole("button", { name: /^Sort the ticket model Completed/ })
    .last()
    .click();
  await page.screenshot({ path: resolve(images, "console-workflow-run.png") });
} finally {
  await browser.close();
}
