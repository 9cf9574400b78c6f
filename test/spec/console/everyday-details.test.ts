import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describePeriod } from "../../../console/src/blocks/duration.ts";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

/** For both services, so that the console does not ask for a token. */
const TOKEN = "one-token-for-both-services-0123456789abcdef";
const LONG_NAME = "LongName".repeat(25);
const chain = Array.from({ length: 16 }, (_, at) => {
  const needs = at === 0 ? "" : `, needs: [step${at - 1}]`;
  return `  step${at}: { type: transform, name: Step ${at}${needs}, with: { value: "\${{ 1 }}" } }`;
});

it.each([
  [43_200_000, "12 h"],
  [86_400_000, "1 d"],
  [5_400_000, "90 min"],
  [1_500, "1.5 s"],
])("a period of %i ms is told in its largest whole unit", (ms, told) => expect(describePeriod(ms)).toBe(told));

describe.skipIf(findChromium() === undefined)("details of everyday use of the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  const said: string[] = [];
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: {
        "agents/helper/agent.json": { name: LONG_NAME, tools: ["SendUserMessage"] },
        "agents/broken/agent.json": "{ not JSON",
        "workflows/chain.yaml": `name: ${LONG_NAME}\nnodes:\n${chain.join("\n")}\n`,
      },
      config: {
        workflow: { token: TOKEN, definitionsDir: "workflows", editable: true },
        agent: { tokens: [{ token: TOKEN, userId: "owner", role: "owner" }] },
      },
    });
    opened.page.on("console", (message) => void said.push(`${message.type()}: ${message.text()}`));
    await opened.signIn(TOKEN);
    await heading("Overview").waitFor();
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  const heading = (name: string) => opened.page.getByRole("heading", { level: 1, name, exact: true });
  const show = (hash: string) => opened.page.evaluate((to) => void (location.hash = to), hash);
  const place = () => opened.page.evaluate(() => location.hash);

  it("Back from an editor to the address that was loaded first asks about unsaved edits", async () => {
    const { page } = opened;
    expect(await place()).toBe("");
    await show("#/webhooks/helper/new");
    await page.getByLabel("Name").fill("deploy");
    await page.evaluate(() => history.back());
    const dialog = page.getByRole("alertdialog", { name: "Leave without saving?" });
    await dialog.getByRole("button", { name: "Stay" }).click();
    expect([await place(), await page.getByLabel("Name").inputValue()]).toEqual(["#/webhooks/helper/new", "deploy"]);
    await page.evaluate(() => history.back());
    await dialog.getByRole("button", { name: "Leave" }).click();
    await heading("Overview").waitFor();
  });

  it("says nothing in the console of the browser", async () => {
    const titles = ["Providers", "Playground", "Agents", "Webhooks", "Schedules", "Workflows", "Runs", "Log", "Approvals"];
    for (const title of titles) await opened.goTo(title);
    expect(said).toEqual([]);
  });

  it("a dialog with fields has the focus in the first of them, so that Enter submits it", async () => {
    const { page } = opened;
    await opened.goTo("Agents");
    await button("New agent").click();
    const dialog = page.getByRole("dialog", { name: "Create an agent" });
    await expect.poll(() => dialog.getByLabel("ID").evaluate((field) => field === document.activeElement)).toBe(true);
    await page.keyboard.press("Enter");
    await dialog.getByText("Use 1 to 64 letters").waitFor();
    await page.keyboard.press("Escape");
  });

  it("an agent.json that is not JSON opens as text, and chosen tools are listed first", async () => {
    const { page } = opened;
    await show("#/agents/broken/edit");
    await page.getByRole("tab", { name: "Text", selected: true }).waitFor();
    await show("#/agents/helper/edit");
    const tools = page.getByRole("group", { name: "Tools", exact: true });
    await tools.waitFor();
    const boxes = tools.getByRole("checkbox");
    expect(await boxes.first().isChecked()).toBe(true);
    expect(await boxes.nth(1).isChecked()).toBe(false);
  });

  it("the whole graph of a long workflow is in view at first, on a desktop and on a phone", async () => {
    const { page } = opened;
    const outside = () =>
      page.getByRole("group", { name: "Graph of the nodes" }).evaluate((graph) => {
        const box = graph.getBoundingClientRect();
        return [...graph.querySelectorAll(".svelte-flow__node")].filter((node) => {
          const at = node.getBoundingClientRect();
          return at.left < box.left || at.right > box.right || at.top < box.top || at.bottom > box.bottom;
        }).length;
      });
    await show("#/workflows/chain");
    await page.locator(".svelte-flow__node").first().waitFor();
    await expect.poll(outside).toBe(0);
    await page.setViewportSize(PHONE);
    await expect.poll(outside).toBe(0);
    await page.setViewportSize(DESKTOP);
  });

  it("names of 200 characters fit on a phone", async () => {
    const { page } = opened;
    await page.setViewportSize(PHONE);
    const wide: string[] = [];
    const places = ["#/agents", "#/agents/helper", "#/agents/helper/edit", "#/webhooks", "#/webhooks/helper"];
    for (const hash of [...places, "#/workflows", "#/workflows/chain", "#/workflows/chain/edit", "#/"]) {
      await show(hash);
      await opened.untilRead();
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      if (width > PHONE.width) wide.push(`${hash}: ${width}`);
    }
    expect(wide).toEqual([]);
    await page.setViewportSize(DESKTOP);
  });

  it("what could not be loaded is tried again by itself: the code of a page, and its data", async () => {
    const { page } = opened;
    await page.route(/\/console\/Measurements-/, (route) => route.abort());
    await page.getByRole("navigation").getByRole("link", { name: "Measurements", exact: true }).click();
    await page.getByText("This page could not be loaded").waitFor();
    await page.unroute(/\/console\/Measurements-/);
    await expect.poll(() => page.getByText("This page could not be loaded").count()).toBe(0);
    await heading("Measurements").waitFor();
    await page.route(/\/api\/.*providers/, (route) => route.abort());
    await page.getByRole("navigation").getByRole("link", { name: "Playground", exact: true }).click();
    await page.getByText("The service does not answer").waitFor();
    await page.unroute(/\/api\/.*providers/);
    await expect.poll(() => page.getByText("The service does not answer").count()).toBe(0);
  });
});
