import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";

describe.skipIf(findChromium() === undefined)("schedules in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      files: {
        "agents/reporter/agent.json": {
          name: "Reporter",
          schedules: [
            { name: "yearly", cron: "0 0 1 1 *", timeZone: "Europe/Berlin", prompt: "Report" },
            { name: "broken", cron: "61 * * * *", prompt: "Never" },
          ],
        },
        "workflows/digest.json": {
          parameters: { type: "object", properties: { topic: { type: "string" } }, required: ["topic"] },
          schedules: [{ name: "yearly", cron: "0 0 1 1 *", parameters: { topic: "all" } }],
          nodes: { n: { type: "transform", with: { value: "${{ parameters.topic }}" } } },
        },
        "workflows/slow.json": {
          schedules: [{ name: "often", every: "1s" }],
          nodes: { ask: { type: "human_gate", with: { title: "Go on?" } } },
        },
        "workflows/breaking.json": {
          schedules: [{ name: "often", every: "1s" }],
          nodes: { break: { type: "transform", with: { value: "${{ parameters.none.at }}" } } },
        },
        "agents/stuck/agent.json": {
          name: "Stuck",
          engine: "missing",
          schedules: [{ name: "yearly", cron: "0 0 1 1 *", prompt: "Look" }],
        },
      },
    });
    await opened.goTo("Schedules");
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const row = (name: string) =>
    opened.page
      .getByRole("table", { name: "Schedules" })
      .getByRole("row")
      .filter({ hasText: `reporter / ${name}` });

  it("are listed with timing, state, next times and fault, also on a phone", async () => {
    await row("yearly").getByText("Never started").waitFor();
    expect(await row("yearly").textContent()).toContain("0 0 1 1 * Europe/Berlin");
    expect(await row("yearly").locator("time").count()).toBe(3);
    expect(await row("broken").textContent()).toContain("it starts nothing until you fix this");
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
  });

  it("are paused and resumed", async () => {
    await opened.page.getByRole("button", { name: "Pause reporter/yearly" }).click();
    await row("yearly").getByText("Paused").waitFor();
    expect((await opened.call("GET", "/api/schedules")).schedules[0]).toMatchObject({ name: "yearly", paused: true });
    await opened.page.getByRole("button", { name: "Resume reporter/yearly" }).click();
    await row("yearly").getByText("Never started").waitFor();
  });

  it("whose starts fail are red, with the failures in a row and a link to the run, and can be shown alone", async () => {
    const { page } = opened;
    const failing = page.getByRole("row").filter({ hasText: "breaking / often" });
    await failing.getByText("Failing").waitFor();
    await failing.getByText(/^\d+ (or more )?failures in a row$/).waitFor();
    await page.getByRole("switch", { name: "Only failing" }).click();
    await row("yearly").waitFor({ state: "detached" });
    await failing.getByText("Failing").waitFor();
    await page.getByText("No failing schedules of agents").waitFor({ state: "detached" });
    expect(await findingsInEveryLook(page)).toEqual([]);
    await failing.getByRole("link", { name: "Failed" }).click();
    await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/^#\/workflows\/breaking\/wrun_/);
    await opened.goTo("Schedules");
    await row("yearly").waitFor();
  });

  it("a failed run is run again from its page, and both runs name each other", async () => {
    const { runId } = await opened.call("POST", "/api/schedules/stuck/yearly/trigger");
    await expect.poll(async () => (await opened.call("GET", `/api/runs/${runId}`)).status).toBe("failed");
    await opened.page.evaluate((id) => (location.hash = `#/runs/${id}`), runId);
    await opened.page.getByRole("button", { name: "Run again" }).click();
    await opened.page.getByRole("link", { name: "a failed run" }).click();
    await opened.page.getByRole("link", { name: "run again" }).waitFor();
    expect((await opened.call("GET", `/api/runs/${runId}`)).again_run_id).toMatch(/^run_/);
    await opened.goTo("Schedules");
  });

  it("a failed run is run again from the list of runs", async () => {
    const { page } = opened;
    const { runId } = await opened.call("POST", "/api/schedules/stuck/yearly/trigger");
    await expect.poll(async () => (await opened.call("GET", `/api/runs/${runId}`)).status).toBe("failed");
    await opened.goTo("Runs");
    const run = page.getByRole("row").filter({ has: page.locator(`a[href="#/runs/${runId}"]`) });
    await run.getByRole("button", { name: "Run again" }).click();
    await page.getByRole("link", { name: "a failed run" }).waitFor();
    const { again_run_id: again } = await opened.call("GET", `/api/runs/${runId}`);
    expect(await page.evaluate(() => location.hash)).toBe(`#/runs/${again}`);
    await opened.goTo("Schedules");
  });

  it("of workflows are listed, paused, resumed and started by hand, with a link to the run", async () => {
    const { page } = opened;
    const digest = page.getByRole("row").filter({ hasText: "digest / yearly" });
    await digest.getByText("Never started").waitFor();
    expect(await digest.textContent()).toContain("0 0 1 1 * UTC");
    await page.getByRole("button", { name: "Pause digest/yearly" }).click();
    await digest.getByText("Paused").waitFor();
    await page.getByRole("button", { name: "Resume digest/yearly" }).click();
    await digest.getByText("Never started").waitFor();
    await page.getByRole("button", { name: "Start digest/yearly now" }).click();
    await digest.getByRole("link", { name: "Started run" }).click();
    await expect.poll(() => page.evaluate(() => location.hash)).toMatch(/^#\/workflows\/digest\/wrun_/);
    await opened.goTo("Schedules");
  });

  it("of workflows say how many planned times wait for the end of the run before them", async () => {
    const slow = opened.page.getByRole("row").filter({ hasText: "slow / often" });
    await slow.getByText(/^\d+ planned times? waits?$/).waitFor();
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
  });

  it("are started by hand, with a link to the run", async () => {
    await opened.page.getByRole("button", { name: "Start reporter/yearly now" }).click();
    await row("yearly").getByRole("link", { name: "Started run" }).click();
    await opened.page.getByRole("heading", { level: 1, name: "Report" }).waitFor();
    const { runs } = await opened.call("GET", "/api/runs");
    expect(runs[0]).toMatchObject({ inbound: { origin: "schedule", displayName: "yearly" } });
  });
});
