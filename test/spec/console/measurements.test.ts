import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";

const OWNER = "owner-token-0123456789abcdef0123456789";

describe.skipIf(findChromium() === undefined)("the measurements of the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      files: {
        "agents/helper/agent.json": { name: "Helper" },
        "agents/broken/agent.json": { name: "Broken", provider: "nobody", model: "none" },
      },
      config: {
        agent: {
          tokens: [{ token: OWNER, userId: "owner", role: "owner" }],
        },
        prices: { currency: "EUR", models: [{ model: "demo", from: "2026-01-01", input: 200_000, output: 200_000 }] },
      },
      isSignedIn: false,
    });
    await opened.signIn(OWNER);
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const drawn = () => opened.page.locator('[data-drawn="true"]');
  const table = (name: string) => opened.page.getByRole("table", { name: new RegExp(`^${name} over the last`) });
  /** The sum of a column of an open table. */
  const sumOf = async (name: string, column: number) =>
    (await table(name).locator(`tbody tr > :nth-child(${column})`).allTextContents())
      .map((text) => Number(text.replaceAll(/[^\d.]/g, "")))
      .reduce((sum, each) => sum + each, 0);
  const chart = (name: string) => opened.page.getByRole("img", { name: new RegExp(`^${name} over the last`) });
  /** The colours of the drawn pixels of a chart. */
  const coloursOf = (name: string) =>
    chart(name)
      .locator("canvas")
      .evaluate((canvas: HTMLCanvasElement) => {
        const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
        const found = new Set<string>();
        for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) found.add(data.subarray(at, at + 3).join(" "));
        return [...found];
      });

  async function callProxy(times: number): Promise<void> {
    const headers = { "content-type": "application/json", "x-api-key": await opened.service.token("demo") };
    const body = JSON.stringify({ model: "demo", max_tokens: 9, stream: true, messages: [{ role: "user", content: "Hello" }] });
    for (let call = 0; call < times; call++)
      await (await fetch(`${opened.service.url("proxy")}/messages`, { method: "POST", headers, body })).text();
  }

  it("says what would be there before the first call", async () => {
    await opened.goTo("Measurements");
    await opened.page.getByText("No calls of models in this time").waitFor();
    expect(await drawn().count()).toBe(0);
  });

  it("draws calls, failures, tokens, costs and latencies when there are calls, without another visit", async () => {
    await callProxy(3);
    for (const name of ["Calls", "Failures", "Tokens", "Cost", "Latency", "First token"]) await chart(name).waitFor();
    await expect.poll(() => drawn().count()).toBe(6);
    await expect.poll(async () => (await coloursOf("Calls")).length).toBeGreaterThan(2);
  });

  it("has a table behind each chart with the values of each step", async () => {
    const { page } = opened;
    await page.getByRole("button", { name: "Calls as a table" }).click();
    await expect.poll(() => sumOf("Calls", 2)).toBe(3);
    await expect.poll(() => table("Calls").locator("tbody tr").count()).toBe(60);
    await page.getByRole("button", { name: "Cost as a table" }).click();
    await expect.poll(() => sumOf("Cost", 2)).toBeGreaterThan(0);
    await page.getByRole("button", { name: "Latency as a table" }).click();
    const median = table("Latency").locator("tbody td:nth-child(2)");
    const known = async () => (await median.allTextContents()).filter((text) => /\d\sm?s\s*$/.test(text)).length;
    await expect.poll(known).toBeGreaterThan(0);
  });

  it("shows a line for each value of the chosen field", async () => {
    const { page } = opened;
    await using client = connectAgent({ baseURL: opened.service.url("agent"), token: OWNER });
    expect((await client.submit({ agentId: "helper", prompt: "Hello" }).ended).status).toBe("completed");
    await page.getByLabel("Show by").selectOption("Area");
    await page.getByRole("button", { name: "Calls as a table" }).click();
    await expect.poll(() => table("Calls").locator("thead th").allTextContents()).toEqual(["Time", "Model proxy", "Agents"]);
    await expect.poll(async () => [await sumOf("Calls", 2), await sumOf("Calls", 3)]).toEqual([3, 1]);
    await chart("Latency, 95th percentile").waitFor();
  });

  it("is used with the keyboard: the time, the field and the tables", async () => {
    const { page } = opened;
    await page.evaluate(() => (location.hash = "#/measurements?by=source"));
    await expect.poll(() => page.getByLabel("Time", { exact: true }).inputValue()).toBe("hour");
    await page.getByLabel("Time", { exact: true }).focus();
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => new URL(page.url()).hash).toBe("#/measurements?range=day&by=source");
    const rows = async () => {
      // The chart of another time is a new one, without its table.
      const toggle = page.getByRole("button", { name: "Calls as a table" });
      if ((await toggle.getAttribute("aria-expanded")) !== "true") {
        await toggle.focus();
        await page.keyboard.press("Enter");
      }
      return table("Calls").locator("tbody tr").count();
    };
    await expect.poll(rows).toBe(24);
    await page.getByLabel("Time", { exact: true }).selectOption("Last 30 days");
    await expect.poll(rows).toBe(30);
    expect(await sumOf("Calls", 2)).toBe(3);
  });

  it("shows calls that have a value of one field by another field, and says which filter is active", async () => {
    const { page } = opened;
    await page.evaluate(() => (location.hash = "#/measurements?by=userId"));
    await page.getByLabel("Filter by").selectOption("Area");
    await page.getByLabel("Only this area").selectOption("Agents");
    await expect.poll(() => new URL(page.url()).hash).toBe("#/measurements?by=userId&source=agent");
    const columns = async () => {
      const toggle = page.getByRole("button", { name: "Calls as a table" });
      if ((await toggle.getAttribute("aria-expanded")) !== "true") await toggle.click();
      return table("Calls").locator("thead th").allTextContents();
    };
    await expect.poll(columns).toEqual(["Time", "owner"]);
    await expect.poll(() => sumOf("Calls", 2)).toBe(1);
    await page.getByRole("button", { name: "Remove the filter Area: Agents" }).click();
    await expect.poll(() => new URL(page.url()).hash).toBe("#/measurements?by=userId");
    await expect.poll(columns).toEqual(["Time", "No user", "owner"]);
  });

  it("opens a shared address with filters, also with values that have no calls or are unknown", async () => {
    const { page } = opened;
    await page.evaluate(() => (location.hash = "#/measurements?by=model&agentId=helper&source=agent&prompt=x"));
    const filters = page.getByRole("list", { name: "Filters" }).getByRole("listitem");
    await expect
      .poll(() => filters.allInnerTexts())
      .toEqual([expect.stringMatching(/Area\s*Agents/), expect.stringMatching(/Agent\s*helper/)]);
    await chart("Calls").waitFor();
    await page.evaluate(() => (location.hash = "#/measurements?agentId=gone&source=nothing"));
    await page.getByText("No calls match in this time").waitFor();
    await expect.poll(() => filters.allInnerTexts()).toEqual([expect.stringMatching(/Agent\s*gone/)]);
    await page.getByLabel("Filter by").selectOption("Agent");
    expect(await page.getByLabel("Only this agent").inputValue()).toBe("gone");
  });

  it("shows how turns and requests ended, by name, and the failures of all work together", async () => {
    const { page } = opened;
    await using client = connectAgent({ baseURL: opened.service.url("agent"), token: OWNER });
    expect((await client.submit({ agentId: "broken", prompt: "Hello" }).ended).status).toBe("failed");
    await page.getByLabel("Show", { exact: true }).selectOption("Turns of agents");
    await expect.poll(() => new URL(page.url()).hash).toBe("#/measurements?show=turn");
    await page.getByRole("button", { name: "Failures as a table" }).click();
    const heads = (name: string) => table(name).locator("thead th").allTextContents();
    await expect.poll(async () => (await heads("Failures")).toSorted()).toEqual(["Time", "broken", "helper"]);
    await expect.poll(async () => (await sumOf("Failures", 2)) + (await sumOf("Failures", 3))).toBe(1);
    await chart("Duration, median").waitFor();
    await page.getByLabel("Show", { exact: true }).selectOption("All work");
    await page.getByRole("button", { name: "Failures as a table" }).click();
    await expect.poll(async () => (await heads("Failures")).toSorted()).toEqual(["Requests", "Time", "Turns"]);
    expect(await page.getByLabel("Filter by").count()).toBe(0);
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("draws a single busy minute as wide as its step, and its latency as a point", async () => {
    const { page } = opened;
    const at = Date.now() - (Date.now() % 60_000) - 59 * 60_000;
    const only = <T>(value: T, rest: T) => Array.from({ length: 60 }, (_, step) => (step === 30 ? value : rest));
    const zeros = only(0, 0);
    const latency = only<number | null>(900, null);
    await page.route("**/api/measurements?*", (route) =>
      route.fulfill({
        json: {
          timeZone: "UTC",
          steps: only("", "").map((_, step) => new Date(at + step * 60_000).toISOString()),
          series: [
            {
              ...{ isRest: false, calls: only(7, 0), failed: zeros, unknown: zeros, inputTokens: zeros, outputTokens: zeros },
              ...{
                durationP50: latency,
                durationP95: only<number | null>(1500, null),
                firstTokenP50: latency,
                firstTokenP95: latency,
              },
            },
          ],
        },
      }),
    );
    await page.evaluate(() => (location.hash = "#/measurements?range=hour&model=any"));
    /** The longest runs of pixels in the line's colour in the upper half, along both axes, in CSS pixels. */
    const runs = (name: string) =>
      chart(name)
        .locator("canvas")
        .evaluate((canvas: HTMLCanvasElement) => {
          const { data, width, height } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, canvas.height);
          const isLine = (x: number, y: number) =>
            data.subarray((y * width + x) * 4, (y * width + x) * 4 + 4).join(" ") === "58 78 208 255";
          const longest = (outer: number, inner: number, at: (outer: number, inner: number) => boolean) => {
            let most = 0;
            for (let one = 0; one < outer; one++)
              for (let other = 0, run = 0; other < inner; other++) most = Math.max(most, (run = at(one, other) ? run + 1 : 0));
            return (most / width) * canvas.clientWidth;
          };
          const half = Math.floor(height / 2);
          return { across: longest(half, width, (y, x) => isLine(x, y)), down: longest(width, half, isLine) };
        });
    const plot = await chart("Calls")
      .locator(".u-over")
      .evaluate(({ clientWidth }) => clientWidth);
    await expect.poll(async () => (await runs("Calls")).across).toBeGreaterThan(plot / 60 - 2);
    // The edges of a step are upright, and those of a peak are not.
    expect((await runs("Calls")).down).toBeGreaterThan(40);
    await expect.poll(async () => (await runs("Latency")).across).toBeGreaterThan(2);
    await page.unroute("**/api/measurements?*");
  });

  it("keeps what was chosen in its address", async () => {
    const { page } = opened;
    await page.evaluate(() => (location.hash = "#/measurements?range=last-30-days&by=source"));
    await expect.poll(() => page.getByLabel("Show by").inputValue()).toBe("source");
    await page.evaluate(() => (location.hash = "#/measurements?range=day&by=model"));
    await expect.poll(() => page.getByLabel("Show by").inputValue()).toBe("model");
    expect(await page.getByLabel("Time", { exact: true }).inputValue()).toBe("day");
    await page.goBack();
    await expect.poll(() => page.getByLabel("Show by").inputValue()).toBe("source");
  });

  it("has no serious finding of axe, with an open table, in light, dark and on a phone", async () => {
    await opened.page.getByRole("button", { name: "Calls as a table" }).click();
    await table("Calls").waitFor();
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
  });

  it("draws again in the colours of a changed theme, and in the width of a changed window", async () => {
    const { page } = opened;
    const light = await coloursOf("Calls");
    const [LIGHT_LINE, DARK_LINE] = ["58 78 208", "160 176 255"];
    expect(light).toContain(LIGHT_LINE);
    // Without an answer: new values would be drawn in the present colours anyway.
    await page.route("**/api/measurements?*", () => {});
    await page.getByRole("radio", { name: "Dark" }).click();
    await expect.poll(() => coloursOf("Calls")).toContain(DARK_LINE);
    expect(await coloursOf("Calls")).not.toContain(LIGHT_LINE);
    await page.unroute("**/api/measurements?*");
    const width = () =>
      chart("Calls")
        .locator("canvas")
        .evaluate(({ clientWidth }) => clientWidth);
    const before = await width();
    await page.setViewportSize({ width: 500, height: 860 });
    await expect.poll(width).not.toBe(before);
  });

  it("draws the label at the end of the time axis whole", async () => {
    const { page } = opened;
    await page.setViewportSize({ width: 1280, height: 860 });
    const steps = Array.from({ length: 30 }, (_, day) => new Date(Date.UTC(2026, 9, 31 + day)).toISOString());
    const zeros = steps.map(() => 0);
    const none = steps.map(() => null);
    const counts = { calls: zeros, failed: zeros, unknown: zeros, inputTokens: zeros, outputTokens: zeros };
    const latencies = { durationP50: none, durationP95: none, firstTokenP50: none, firstTokenP95: none };
    await page.route("**/api/measurements?*", (route) =>
      route.fulfill({ json: { timeZone: "UTC", steps, series: [{ isRest: false, ...counts, ...latencies }] } }),
    );
    // Texts of the axis, with the place at which each ends.
    await page.evaluate(() => {
      const ends: number[] = [];
      Object.assign(window, { textEnds: ends });
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, ...more) {
        const isCentred = this.textAlign === "center";
        if (isCentred) ends.push((x + this.measureText(text).width / 2) / this.canvas.width);
        return fillText.call(this, text, x, ...more);
      };
    });
    await page.evaluate(() => (location.hash = "#/measurements?range=last-30-days&model=any"));
    const ends = () => page.evaluate(() => (window as unknown as { textEnds: number[] }).textEnds);
    await expect.poll(async () => (await ends()).length).toBeGreaterThan(5);
    expect(Math.max(...(await ends()))).toBeLessThanOrEqual(1);
    await page.unroute("**/api/measurements?*");
  });
});
