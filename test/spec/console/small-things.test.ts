import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

/** For both services, so that the console does not ask for a token. */
const TOKEN = "one-token-for-both-services-0123456789abcdef";
const LONG = "Answers questions about orders, invoices, returns and everything else that customers ask. ".repeat(12).trim();

const ask = `
name: Ask
description: ${LONG}
parameters: { type: object, properties: { word: { type: string } } }
nodes:
  ask: { type: human_gate, name: Go on?, with: { title: Go on? } }
`;

describe.skipIf(findChromium() === undefined)("everyday use of the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: {
        "agents/helper/agent.json": { name: "The helper", description: LONG },
        "workflows/ask.yaml": ask,
      },
      config: {
        workflow: { token: TOKEN, definitionsDir: "workflows" },
        agent: { tokens: [{ token: TOKEN, userId: "owner", role: "owner" }] },
      },
    });
    await opened.signIn(TOKEN);
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  const heading = (name: string) => opened.page.getByRole("heading", { level: 1, name, exact: true });
  const focused = () =>
    opened.page.evaluate(() => document.activeElement?.getAttribute("placeholder") ?? document.activeElement?.textContent);
  const place = () => opened.page.evaluate(() => location.hash);
  const show = (hash: string) => opened.page.evaluate((to) => void (location.hash = to), hash);
  async function startedRun(): Promise<string> {
    const answer = await fetch(`${opened.service.url("workflow")}/api/workflow/webhook?id=ask`, {
      method: "POST",
      headers: { "x-workflow-service-token": TOKEN, "content-type": "application/json" },
      body: "{}",
    });
    return ((await answer.json()) as { runId: string }).runId;
  }

  it("empty lists have a button that does the next step", async () => {
    const { page } = opened;
    await opened.goTo("Runs");
    await page.getByText("No agent has run yet").waitFor();
    await page.getByRole("link", { name: "Talk to an agent" }).click();
    await heading("Agents").waitFor();
    await show("#/runs?outcome=failed&agent_id=helper");
    await page.getByRole("link", { name: "Show all runs" }).click();
    expect(await place()).toBe("#/runs");
    await opened.goTo("Providers");
    await page.getByText("No tokens yet").waitFor();
    await show("#/webhooks/helper");
    await page.getByRole("link", { name: "Write the first event" }).click();
    await heading("New event").waitFor();
  });

  it("long texts are cut, and shown whole on request", async () => {
    const { page } = opened;
    await opened.goTo("Agents");
    const text = page.getByText(LONG);
    const height = async () => (await text.boundingBox())!.height;
    const cut = await height();
    await button("More of the description").click();
    await expect.poll(height).toBeGreaterThan(cut);
    await button("Less of the description").click();
    await expect.poll(height).toBe(cut);
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("rows of tables are cards on a phone: no scrolling to the side, each value with its title, and still a table", async () => {
    const { page } = opened;
    await page.setViewportSize(PHONE);
    const table = page.getByRole("table", { name: "Agents" });
    const scrolls = () => table.evaluate((shown) => shown.parentElement!.scrollWidth > shown.parentElement!.clientWidth);
    await expect.poll(scrolls).toBe(false);
    const titles = await table
      .getByRole("cell")
      .evaluateAll((cells) => cells.map((cell) => getComputedStyle(cell, "::before").content));
    expect(titles).toContain('"Engine"');
    expect(await table.getByRole("columnheader").count()).toBe(6);
    await page.setViewportSize(DESKTOP);
  });

  it("the focus goes to the message when a conversation is opened, from the list and from an address", async () => {
    await opened.goTo("Agents");
    await opened.page.getByRole("link", { name: "The helper" }).click();
    await heading("The helper").waitFor();
    await expect.poll(focused).toBe("Message to The helper");
    await opened.goTo("Overview");
    await show("#/agents/helper");
    await heading("The helper").waitFor();
    await expect.poll(focused).toBe("Message to The helper");
  });

  it("pages of a webhook have the name of its agent", async () => {
    const { page } = opened;
    await show("#/webhooks/helper");
    await heading("The helper").waitFor();
    await show("#/webhooks/helper/new");
    await page.getByRole("link", { name: "Webhook of The helper" }).waitFor();
    await page.getByText("An event of The helper").waitFor();
  });

  it("unsaved edits are asked about before they are left, by a link, by the browser's Back, and by closing the page", async () => {
    const { page } = opened;
    await show("#/webhooks/helper");
    await heading("The helper").waitFor();
    await show("#/webhooks/helper/new");
    await page.getByLabel("Name").fill("deploy");
    const dialog = page.getByRole("alertdialog", { name: "Leave without saving?" });
    await page.getByRole("link", { name: "Webhook of The helper" }).click();
    await dialog.getByRole("button", { name: "Stay" }).click();
    await expect.poll(() => dialog.count()).toBe(0);
    expect([await place(), await page.getByLabel("Name").inputValue()]).toEqual(["#/webhooks/helper/new", "deploy"]);
    await page.evaluate(() => history.back());
    await dialog.getByRole("button", { name: "Stay" }).click();
    await expect.poll(() => dialog.count()).toBe(0);
    expect([await place(), await page.getByLabel("Name").inputValue()]).toEqual(["#/webhooks/helper/new", "deploy"]);
    const isHeld = () => page.evaluate(() => !dispatchEvent(new Event("beforeunload", { cancelable: true })));
    expect(await isHeld()).toBe(true);
    await opened.page.getByRole("navigation").getByRole("link", { name: "Runs" }).click();
    await dialog.getByRole("button", { name: "Leave" }).click();
    await heading("Runs").waitFor();
    expect(await isHeld()).toBe(false);
  });

  it("saved edits are not asked about", async () => {
    const { page } = opened;
    await show("#/webhooks/helper/new");
    await page.getByLabel("Name").fill("deploy");
    await page.getByLabel("Prompt template").fill("Version {{version}}");
    await button("Create event").click();
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await heading("The helper").waitFor();
    expect(await page.getByRole("alertdialog").count()).toBe(0);
  });

  it("the dialog that cancels a run has no second cancelling button; what it did is told, also on the next page", async () => {
    const { page } = opened;
    const runId = await startedRun();
    await show(`#/workflows/ask/${runId}`);
    await button("Cancel the run").click();
    const dialog = page.getByRole("alertdialog", { name: "Cancel this run?" });
    const labels = (await dialog.getByRole("button").allTextContents()).map((label) => label.trim());
    expect(labels).toEqual(["Keep it running", "Cancel the run"]);
    await dialog.getByRole("button", { name: "Keep it running" }).click();
    await button("Approve").waitFor();
    await button("Cancel the run").click();
    await dialog.getByRole("button", { name: "Cancel the run" }).click();
    await button("Run again").click();
    await page.getByRole("dialog").getByRole("button", { name: "Run again" }).click();
    await expect.poll(place).not.toBe(`#/workflows/ask/${runId}`);
    await page.getByRole("status").getByText("Started", { exact: true }).waitFor();
  });

  it("the times of a run are one line", async () => {
    const { page } = opened;
    await show("#/agents/helper");
    await page.getByLabel("Message to The helper").fill("Hello");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "Run", exact: true }).click();
    await page.getByRole("button", { name: "Rename" }).waitFor();
    await page.getByText("ready for another turn").waitFor();
    const when = page.locator("dl > div").filter({ has: page.getByText("When", { exact: true }) });
    await expect.poll(() => when.locator("time").count()).toBe(1);
    expect(await page.locator("dt").allTextContents()).not.toContain("Changed");
  });

  it("choices from lists look alike, and like other fields", async () => {
    const { page } = opened;
    await opened.goTo("Runs");
    const looks = await page
      .locator("select")
      .evaluateAll((all) => [...new Set(all.map((each) => getComputedStyle(each).appearance))]);
    expect(looks).toEqual(["none"]);
    expect(await findingsInEveryLook(page)).toEqual([]);
  });
});
