import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

/** For both services, so that the console does not ask for a token. */
const TOKEN = "one-token-for-both-services-0123456789abcdef";
/** More than two pages. */
const MANY = 112;
const ROWS = 50;
/** Rows that a document may have. */
const MOST_ROWS = 100;

const padded = (at: number) => String(at).padStart(3, "0");
const numbers = Array.from({ length: MANY }, (_, at) => padded(at + 1));
const agents = Object.fromEntries(
  numbers.map((each) => [
    `agents/agent-${each}/agent.json`,
    {
      name: `Agent ${each}`,
      description: Number(each) % 2 === 0 ? "An even number" : "An odd number",
      schedules: [{ name: "yearly", cron: "0 0 1 1 *", prompt: "Look" }],
    },
  ]),
);
const workflows = Object.fromEntries(
  numbers.map((each) => [
    `workflows/workflow-${each}.yaml`,
    `
name: Workflow ${each}
schedules: [{ name: monthly, cron: "0 0 1 * *" }]
nodes: { a: { type: transform, with: { value: 1 } } }
`,
  ]),
);

describe.skipIf(findChromium() === undefined)("lists that a call answers whole, in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: {
        ...agents,
        ...workflows,
        ...Object.fromEntries(
          numbers.slice(0, 60).map((each) => [`workflows/broken-${each}.yaml`, "nodes: { a: { type: none } }"]),
        ),
      },
      config: {
        workflow: { token: TOKEN, definitionsDir: "workflows" },
        agent: { tokens: [{ token: TOKEN, userId: "owner", role: "owner" }] },
      },
    });
    const headers = { "x-agent-service-token": TOKEN, "content-type": "application/json" };
    for (const each of numbers) {
      const body = JSON.stringify({ providerId: "demo", label: `Token ${each}` });
      const answer = await fetch(`${opened.service.url("agent")}/api/safe-tokens`, { method: "POST", headers, body });
      expect(answer.ok).toBe(true);
    }
    await opened.signIn(TOKEN);
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    await opened.page.setViewportSize(DESKTOP);
    await show("#/");
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });

  const show = (hash: string) => opened.page.evaluate((to) => void (location.hash = to), hash);
  const place = () => opened.page.evaluate(() => location.hash);
  const table = (name: string) => opened.page.getByRole("table", { name, exact: true });
  const rows = (name: string) => table(name).locator("tbody tr");
  const pages = (several: string) => opened.page.getByRole("navigation", { name: `Pages of ${several}`, exact: true });
  const find = (several: string) => opened.page.getByRole("searchbox", { name: `Find ${several}`, exact: true });
  const focused = () => opened.page.evaluate(() => document.activeElement?.textContent?.trim());

  const LISTS = [
    { at: "#/agents", name: "Agents", several: "agents" },
    { at: "#/webhooks", name: "Agents", several: "agents" },
    { at: "#/workflows", name: "Workflows", several: "workflows" },
    { at: "#/providers", name: "Safe tokens", several: "tokens" },
    { at: "#/schedules", name: "Schedules", several: "schedules of agents" },
    { at: "#/schedules", name: "Workflows with planned times", several: "schedules of workflows", prefix: "workflow_" },
  ];
  it.each(LISTS)("$at has pages of $several and finds them by words, which are in the address", async (list) => {
    const { at, name, several, prefix = "" } = list;
    const { page } = opened;
    await show(at);
    await expect.poll(() => rows(name).count()).toBe(ROWS);
    expect(await page.locator("tbody tr").count()).toBeLessThanOrEqual(2 * ROWS + 20);
    await pages(several).getByText(`1–${ROWS} of ${MANY} ${several}`).waitFor();
    await pages(several).getByRole("link", { name: "Next" }).click();
    await pages(several)
      .getByText(`${ROWS + 1}–${2 * ROWS} of ${MANY} ${several}`)
      .waitFor();
    await pages(several).getByRole("link", { name: "Next" }).click();
    await expect.poll(() => rows(name).count()).toBe(MANY - 2 * ROWS);
    expect(await place()).toBe(`${at}?${prefix}page=3`);
    await find(several).pressSequentially("0 11");
    await expect.poll(() => place()).toBe(`${at}?${prefix}q=0+11`);
    expect(await find(several).evaluate((input) => input === document.activeElement)).toBe(true);
    const wanted = several.startsWith("schedules") ? /-(011|110|11[12])/ : /(110|011|0.*11)/;
    for (const text of await rows(name).allTextContents()) expect(text).toMatch(wanted);
    await show(`${at}?${prefix}q=nothing-has-this`);
    await page.getByText("No matching").waitFor();
    await page.getByRole("button", { name: `Show all ${several}` }).click();
    await expect.poll(() => rows(name).count()).toBe(ROWS);
    expect(await place()).toBe(at);
  });

  it("an address with words and page shows the same rows, and Back returns to the page before", async () => {
    const { page } = opened;
    await show("#/agents?q=even&page=2");
    await expect.poll(() => rows("Agents").count()).toBe(MANY / 2 - ROWS);
    await page.reload();
    await opened.signIn(TOKEN);
    await expect.poll(() => rows("Agents").count()).toBe(MANY / 2 - ROWS);
    expect(await find("agents").inputValue()).toBe("even");
    await pages("agents").getByRole("link", { name: "Previous" }).click();
    await expect.poll(() => rows("Agents").count()).toBe(ROWS);
    await page.goBack();
    await expect.poll(() => rows("Agents").count()).toBe(MANY / 2 - ROWS);
    await show("#/agents?page=99");
    await expect.poll(() => rows("Agents").count()).toBe(MANY - 2 * ROWS);
  });

  it("the arrow keys walk through the rows and beyond the ends of a page, also where rows have only buttons", async () => {
    const { page } = opened;
    await show("#/agents");
    await table("Agents").getByRole("link", { name: "Agent 001" }).focus();
    await page.keyboard.press("ArrowDown");
    expect(await focused()).toBe("Agent 002");
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => focused()).toBe("Agent 051");
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => focused()).toBe("Agent 050");
    expect(await place()).toBe("#/agents");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Agent 050" }).waitFor();
    await show("#/providers?q=11");
    await table("Safe tokens").getByRole("button").first().focus();
    const first = await focused();
    await page.keyboard.press("ArrowDown");
    expect(await focused()).not.toBe(first);
    expect(await focused()).toMatch(/^Revoke/);
  });

  it("files that cannot be used have pages and words of their own", async () => {
    await show("#/workflows?q=workflow-001");
    await expect.poll(() => rows("Broken definitions").count()).toBe(ROWS);
    await find("files").fill("broken-007");
    await expect.poll(() => rows("Broken definitions").count()).toBe(1);
    expect(await rows("Workflows").count()).toBe(1);
    expect(await place()).toBe("#/workflows?q=workflow-001&broken_q=broken-007");
  });

  it("conversations have pages and are found by words, and one is opened beside the same page", async () => {
    const { page } = opened;
    const client = connectAgent({ baseURL: opened.service.url("agent"), token: TOKEN });
    try {
      for (let at = 1; at <= 60; at++) await client.submit({ agentId: "agent-001", prompt: `Question ${at}` }).ended;
    } finally {
      await client.close();
    }
    await show("#/agents/agent-001");
    const list = page.getByRole("complementary", { name: "Conversations" });
    const links = list.locator("ul a");
    await expect.poll(() => links.count()).toBe(50);
    await list.getByRole("link", { name: "Older" }).click();
    await expect.poll(() => links.count()).toBe(10);
    await links.first().focus();
    await page.keyboard.press("ArrowDown");
    expect(await links.nth(1).evaluate((link) => link === document.activeElement)).toBe(true);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 2, name: "Question 9" }).waitFor();
    expect(await links.count()).toBe(10);
    expect(await place()).toMatch(/^#\/agents\/agent-001\/[\w-]+\?after=/);
    await list.getByRole("searchbox").fill("question 42");
    await list.getByRole("searchbox").press("Enter");
    await expect.poll(() => links.count()).toBe(1);
    await page.getByRole("heading", { level: 2, name: "Question 9" }).waitFor();
    await links.first().click();
    await page.getByRole("heading", { level: 2, name: "Question 42" }).waitFor();
    expect(await links.count()).toBe(1);
    await list.getByRole("link", { name: "Clear" }).click();
    await expect.poll(() => links.count()).toBe(50);
    expect(await links.count()).toBeLessThanOrEqual(MOST_ROWS);
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it.each(["#/agents?q=11", "#/workflows?page=2", "#/providers?q=11", "#/schedules?q=11&workflow_q=11", "#/webhooks?q=none"])(
    "%s has no findings in any look",
    async (at) => {
      await show(at);
      await expect.poll(() => opened.page.getByRole("searchbox").count()).toBeGreaterThan(0);
      await opened.page.setViewportSize(PHONE);
      expect(await findingsInEveryLook(opened.page)).toEqual([]);
    },
  );
});
