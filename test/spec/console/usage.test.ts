import { readFile } from "node:fs/promises";
import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

const [OWNER, MEMBER] = ["owner-token-0123456789abcdef0123456789", "member-token-0123456789abcdef012345678"];

describe.skipIf(findChromium() === undefined)("the usage and costs of the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      files: {
        "agents/helper/agent.json": { name: "Helper" },
        "agents/limited/agent.json": { name: "Limited", limits: { tokensPerDay: 1_000_000 } },
      },
      config: {
        usage: { timeZone: "Europe/Berlin" },
        limits: { instance: { moneyPerDay: 1_000_000 }, user: { tokensPerDay: 1_000_000 } },
        agent: {
          tokens: [
            { token: OWNER, userId: "owner", role: "owner" },
            { token: MEMBER, userId: "mia", role: "member" },
          ],
        },
        prices: { currency: "EUR", models: [{ model: "demo", from: "2026-01-01", input: 200_000, output: 200_000 }] },
      },
      isSignedIn: false,
    });
    for (const [token, agentId] of [
      [OWNER, "helper"],
      [MEMBER, "limited"],
    ] as const) {
      await using client = connectAgent({ baseURL: opened.service.url("agent"), token });
      expect((await client.submit({ agentId, prompt: "Hello" }).ended).status).toBe("completed");
    }
    await opened.signIn(OWNER);
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const table = (by: string) => opened.page.getByRole("table", { name: new RegExp(`^Usage by ${by} `) });
  const names = (by: string) => table(by).getByRole("rowheader").allInnerTexts();
  const cell = async (by: string, row: string, column: string) => {
    const heads = await table(by).locator("thead th").allInnerTexts();
    const found = table(by)
      .getByRole("row")
      .filter({ has: opened.page.getByRole("rowheader", { name: row, exact: true }) });
    return found.locator(":scope > *").nth(heads.indexOf(column)).innerText();
  };

  it("leads in two clicks from the overview to what cost most last week, by agent and by user", async () => {
    const { page } = opened;
    for (const [link, title] of [
      ["by agent", "Usage by agent"],
      ["by user", "Usage by user"],
    ] as const) {
      await opened.goTo("Overview");
      await page.getByRole("link", { name: link }).click();
      await page.getByRole("heading", { name: title }).waitFor();
      expect(await page.getByLabel("Time", { exact: true }).inputValue()).toBe("last-week");
    }
    await page.getByText("No usage in this time").waitFor();
  });

  it("shows the costs, shares and sums of each value, and names the time zone of the days", async () => {
    const { page } = opened;
    await page.getByLabel("Time", { exact: true }).selectOption("Today");
    await page.getByLabel("Show by").selectOption("Agent");
    await expect.poll(async () => (await names("agent")).toSorted()).toEqual(["Total", "helper", "limited"]);
    await page.getByText("Time zone: Europe/Berlin").waitFor();
    const costs = await Promise.all(["helper", "limited", "Total"].map((row) => cell("agent", row, "Cost in EUR")));
    const [helper, limited, total] = costs.map(Number) as [number, number, number];
    expect(helper).toBeGreaterThan(0);
    expect(helper + limited).toBeCloseTo(total, 1);
    const shares = await Promise.all(["helper", "limited"].map((row) => cell("agent", row, "Share")));
    expect(shares.map((share) => Number.parseFloat(share)).reduce((sum, share) => sum + share, 0)).toBeCloseTo(100, 0);
    expect(await cell("agent", "helper", "Change")).toBe("new");
  });

  it("leads from a value to its own calls", async () => {
    const { page } = opened;
    await table("agent").getByRole("link", { name: "helper" }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe("#/measurements?range=today&by=model&agentId=helper");
    await expect.poll(() => names("model")).toEqual(["demo", "Total"]);
    await page.goBack();
  });

  it("saves the table as CSV, with the field and the days in its name", async () => {
    const { page } = opened;
    await table("agent").waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save as CSV" }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/^usage-by-agentId-\d{4}-\d\d-\d\d\.csv$/);
    const [head, ...lines] = (await readFile(await download.path(), "utf8")).split("\r\n");
    expect(head).toMatch(/^agentId,calls,.*,cost_EUR,calls_without_price,share_of_cost,before_calls/);
    expect(lines.map((line) => line.split(",")[0])).toEqual([expect.any(String), expect.any(String), "(total)", ""]);
  });

  it("takes own days, which are in the address", async () => {
    const { page } = opened;
    await page.getByLabel("Time", { exact: true }).selectOption("Own days …");
    await page.getByText("Choose the first and the last day").waitFor();
    await page.getByLabel("First day").fill("2026-11-01");
    await page.getByLabel("Last day").fill("2026-11-02");
    await expect.poll(() => new URL(page.url()).hash).toBe("#/measurements?range=own&from=2026-11-01&to=2026-11-02&by=agentId");
    await page.getByText("No usage in this time").waitFor();
    await page.getByText(/compared with .*Oct 30/).waitFor();
  });

  it("says how many calls have no price or no known usage, which the sums leave out", async () => {
    const { page } = opened;
    const sums = { calls: 3, refused: 0, failed: 1, unknown: 1, inputTokens: 5, cachedInputTokens: 0, cacheWriteTokens: 0 };
    const all = { ...sums, outputTokens: 5, cost: 0, unpriced: 2, before: { ...sums, outputTokens: 5, cost: 0, unpriced: 0 } };
    const span = { since: "2026-11-28T23:00:00.000Z", until: "2026-11-29T10:00:00.000Z" };
    const rows = [{ value: "free", isRest: false, share: 1, ...all }];
    const json = { timeZone: "Europe/Berlin", ...span, before: span, currency: "EUR", shareOf: "tokens", rows, total: all };
    await page.route("**/api/usage/table?*", (route) => route.fulfill({ json }));
    await page.evaluate(() => (location.hash = "#/measurements?range=today&by=provider"));
    await page.getByText("2 calls without a price: their cost is not known, and not part of the sums.").waitFor();
    await page.getByText("1 call without known usage: their tokens and cost are not part of the sums.").waitFor();
    expect(await cell("provider", "free", "Cost in EUR")).toBe("no price");
    await page.unroute("**/api/usage/table?*");
  });

  it("shows how much of the limits of the day is used, and when they begin again", async () => {
    const { page } = opened;
    const panel = page.getByRole("region", { name: "Limits of today" });
    const shown = async () => (await panel.locator("strong").allInnerTexts()).toSorted();
    await expect.poll(shown).toEqual(["Agent limited: tokens", "The instance: cost", "User mia: tokens", "User owner: tokens"]);
    await panel.getByText(/All begin again in/).waitFor();
    await expect.poll(() => panel.getByRole("progressbar").count()).toBe(4);
  });

  it("has no serious finding of axe, in light, dark and on a phone, and the page is not wider than the phone", async () => {
    const { page } = opened;
    await page.evaluate(() => (location.hash = "#/measurements?range=today&by=agentId"));
    await table("agent").waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.setViewportSize(PHONE);
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(PHONE.width);
    await page.setViewportSize({ width: 1280, height: 860 });
  });

  it("names limits of which 80 % is used on the overview", async () => {
    const { page } = opened;
    const budget = (id: string, used: number) => ({ scope: "user", id, limit: "tokensPerDay", used, most: 100 });
    const json = { endsAt: new Date(Date.now() + 7_200_000).toISOString(), omitted: 0, budgets: [] as object[] };
    json.budgets = [budget("full", 100), budget("near", 80), budget("far", 79)];
    await page.route("**/api/budgets", (route) => route.fulfill({ json }));
    await opened.goTo("Overview");
    const panel = page.getByRole("region", { name: "Limits that are nearly used up" });
    await expect.poll(() => panel.locator("strong").allInnerTexts()).toEqual(["User full: tokens", "User near: tokens"]);
    await panel.getByText("Used up", { exact: true }).waitFor();
    await page.unroute("**/api/budgets");
  });

  it("shows members their own usage and limits", async () => {
    const { page } = opened;
    await page.getByRole("button", { name: "Sign out" }).click();
    await opened.signIn(MEMBER);
    await opened.goTo("Measurements");
    await page.getByLabel("Time", { exact: true }).selectOption("Today");
    await page.getByLabel("Show by").selectOption("Agent");
    await expect.poll(() => names("agent")).toEqual(["limited", "Total"]);
    await page.getByText("User mia: tokens").waitFor();
    expect(await page.getByText("The instance: cost").count()).toBe(0);
    expect(await page.getByLabel("Show", { exact: true }).count()).toBe(0);
  });
});
