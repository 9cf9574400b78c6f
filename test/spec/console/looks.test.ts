import { connectAgent, type Query } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

/** For both services, so that the console does not ask for a token. */
const TOKEN = "one-token-for-both-services-0123456789abcdef";
const REASON = "The agent's provider is not configured";
const LONG_NAME = "Averylongnamewithoutspaces".repeat(4);
const tooSmall = `
name: Too small
parameters: { type: object, properties: { limit: { type: integer, default: 1 } } }
schedules: [{ name: yearly, cron: "0 0 1 1 *" }]
nodes:
  begin: { type: transform, name: Begin, with: { value: "\${{ parameters.limit }}" } }
  look: { type: code, name: Look, needs: [begin], with: { source: "throw new Error('Too small')" } }
  end: { type: transform, name: End, needs: [look], with: { value: done } }
`;

describe.skipIf(findChromium() === undefined)("what the web console shows, and where", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  let client: ReturnType<typeof connectAgent>;
  let waiting: Query;
  let failedRun: string;
  let workflowRun: string;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: {
        "agents/broken/agent.json": { name: "Broken", provider: "nobody", model: "none" },
        "agents/long/agent.json": {
          name: LONG_NAME,
          description: "Answers questions about orders, invoices and returns. ".repeat(20).trim(),
          schedules: [{ name: "yearly", cron: "0 0 1 1 *", prompt: "Look" }],
        },
        "agents/boss/agent.json": {
          name: "Boss",
          tools: ["DelegateToAgent"],
          toolPolicy: { tools: { DelegateToAgent: "ask" } },
        },
        "workflows/too-small.yaml": tooSmall,
      },
      config: {
        workflow: { token: TOKEN, definitionsDir: "workflows" },
        agent: { tokens: [{ token: TOKEN, userId: "owner", role: "owner" }] },
      },
    });
    await opened.signIn(TOKEN);
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    client = connectAgent({ baseURL: opened.service.url("agent"), token: TOKEN });
  });
  afterAll(async () => {
    waiting?.abort();
    await client?.close();
    await opened?.[Symbol.asyncDispose]();
  });

  const show = (hash: string) => opened.page.evaluate((to) => void (location.hash = to), hash);
  const panel = (title: string) => opened.page.getByRole("region", { name: title, exact: true });
  const boxOf = async (of: ReturnType<OpenConsole["page"]["locator"]>) => (await of.boundingBox())!;
  const isInView = async (of: ReturnType<OpenConsole["page"]["locator"]>) => {
    const { y } = await boxOf(of);
    return y >= 0 && y < DESKTOP.height;
  };

  it("an empty list leads to the next step", async () => {
    const { page } = opened;
    await page.getByRole("link", { name: "Choose a workflow to start" }).click();
    await page.getByRole("heading", { level: 1, name: "Workflows" }).waitFor();
    await opened.goTo("Measurements");
    await page.getByRole("link", { name: "Talk to an agent" }).click();
    await page.getByRole("heading", { level: 1, name: "Agents" }).waitFor();
    await opened.goTo("Approvals");
    await panel("Waiting decisions").getByRole("link", { name: "Choose a workflow to start" }).waitFor();
    await show("#/webhooks/long");
    await panel("Deliveries").getByRole("link", { name: "Add an event" }).waitFor();
  });

  it("a failed run says its reason on the overview and at its own top, before the timeline and the turns", async () => {
    const query = client.submit({ agentId: "broken", prompt: "Say hello" });
    failedRun = (await query.started)!.runId!;
    await query.ended.catch(() => undefined);
    await opened.goTo("Overview");
    await opened.page
      .getByRole("table", { name: "Failures by cause" })
      .getByRole("link", { name: /^Provider / })
      .first()
      .waitFor();
    await show(`#/runs/${failedRun}`);
    await panel("About this run").getByText(REASON).first().waitFor();
    await panel("Timeline").waitFor();
    const tops = await Promise.all(["About this run", "Timeline", "Turns"].map(async (title) => (await boxOf(panel(title))).y));
    expect(tops).toEqual(tops.toSorted((one, other) => one - other));
  });

  it("the status of a part in the timeline ends before its bar", async () => {
    const bad = opened.page.getByRole("treeitem").filter({ hasText: "provider_unavailable" });
    const words = await bad.locator(".status").evaluate((place) => {
      const range = document.createRange();
      range.selectNodeContents(place);
      return range.getBoundingClientRect().right;
    });
    expect(words).toBeLessThanOrEqual((await boxOf(bad.locator(".track"))).x);
  });

  it("a comparison opens in view, with the focus in it", async () => {
    const { page } = opened;
    await page.getByRole("link", { name: "Compare" }).click();
    const choice = panel("Compare with another turn").getByLabel("The other run");
    await expect.poll(() => choice.evaluate((each) => each === document.activeElement)).toBe(true);
    expect(await isInView(choice)).toBe(true);
  });

  it("a run of a workflow counts nodes that failed and were skipped apart from those that completed", async () => {
    const { page } = opened;
    const answer = await fetch(`${opened.service.url("workflow")}/api/workflow/webhook?id=too-small`, {
      method: "POST",
      headers: { "x-workflow-service-token": TOKEN, "content-type": "application/json" },
      body: "{}",
    });
    ({ runId: workflowRun } = (await answer.json()) as { runId: string });
    await show(`#/workflows/too-small/${workflowRun}`);
    await page.getByRole("status", { name: "Status of the run" }).getByText("Failed").waitFor();
    const figure = page.locator("dl > div").filter({ hasText: "Nodes completed" });
    await expect.poll(() => figure.textContent()).toMatch(/1 of 3.*1 failed/);
  });

  it("asks in the colour of danger only if something is stopped or removed", async () => {
    const { page } = opened;
    await page.getByRole("button", { name: "Run again" }).click();
    const confirm = page.getByRole("dialog").getByRole("button", { name: "Run again" });
    expect(await confirm.getAttribute("data-kind")).toBe("primary");
    await page.keyboard.press("Escape");
  });

  it("schedules of agents and workflows are two panels with a gap, and next times are a column on a phone", async () => {
    const { page } = opened;
    await opened.goTo("Schedules");
    await page.getByRole("table", { name: "Workflows with planned times" }).waitFor();
    const [first, second] = [await boxOf(panel("Agents")), await boxOf(panel("Workflows"))];
    expect(second.y - (first.y + first.height)).toBeGreaterThanOrEqual(16);
    await page.setViewportSize(PHONE);
    const times = page.getByRole("table", { name: "Schedules", exact: true }).getByRole("cell").nth(1).locator("time");
    const ends = await times.evaluateAll((all) => all.map((each) => each.getBoundingClientRect().top));
    expect(new Set(ends).size).toBe(3);
    await page.setViewportSize(DESKTOP);
  });

  it("on a phone a long name stays in its card, and what is pressed is at least 40 pixels high", async () => {
    const { page } = opened;
    await opened.goTo("Agents");
    await page.setViewportSize(PHONE);
    const row = page.getByRole("row").filter({ hasText: LONG_NAME });
    const [name, card] = [await boxOf(row.locator(".called")), await boxOf(row)];
    expect(name.x + name.width).toBeLessThanOrEqual(card.x + card.width - 16);
    const more = await boxOf(page.getByRole("button", { name: "More of the description" }));
    expect(Math.min(more.width, more.height)).toBeGreaterThanOrEqual(40);
    await page.setViewportSize(DESKTOP);
  });

  it("on a phone every tab of the limits is in view, and no two limits have one name", async () => {
    const { page } = opened;
    await opened.goTo("Providers");
    await page.setViewportSize(PHONE);
    const tabs = page.getByRole("tablist", { name: "Which limits are shown" }).getByRole("tab");
    await tabs.first().waitFor();
    for (const tab of await tabs.all()) {
      const { x, width } = await boxOf(tab);
      expect(x + width).toBeLessThanOrEqual(PHONE.width);
      await tab.click();
      const names = await page.getByRole("table", { name: "Limits" }).getByRole("rowheader").allTextContents();
      expect(names).toEqual([...new Set(names)]);
    }
    await page.setViewportSize(DESKTOP);
  });

  it("on a phone all values of a run end at the same place, and the reason is with the status", async () => {
    const { page } = opened;
    await show("#/runs?columns=outcome,agent,user,source,error,duration,tokens,cost,started");
    await page.setViewportSize(PHONE);
    const row = page.getByRole("row").filter({ hasText: "broken" });
    await row.locator(".text").first().waitFor();
    const ends = await row
      .locator(".text, .status, .number")
      .evaluateAll((all) => all.map((each) => Math.round(each.getBoundingClientRect().right)));
    expect(new Set(ends).size).toBe(1);
    await page.setViewportSize(DESKTOP);
  });

  it("the log leaves out requests until all lines are chosen, and the address says so", async () => {
    const { page } = opened;
    await opened.goTo("Log");
    await page.getByText("Started", { exact: true }).first().waitFor();
    expect(await page.getByLabel("Lines", { exact: true }).inputValue()).toBe("message");
    await page.getByLabel("Lines", { exact: true }).selectOption({ label: "All lines" });
    await expect.poll(() => page.evaluate(() => location.hash)).toBe("#/log?kind=all");
  });

  it("code in the description of a tool is shown as code", async () => {
    const { page } = opened;
    waiting = client.submit({ agentId: "boss", prompt: "DelegateToAgent" });
    for await (const { type } of waiting) if (type === "approval") break;
    await show("#/approvals");
    await page.getByRole("button", { name: /DelegateToAgent/, expanded: false }).click();
    const description = page.locator(".description");
    await description.waitFor();
    expect(await description.locator("code").first().textContent()).toBe("wait");
    expect(await description.textContent()).not.toContain("`");
  });

  it("lines of an agent.json wrap, and a button formats it", async () => {
    const { page } = opened;
    await show("#/agents/long/edit");
    await page.getByRole("tab", { name: "Text" }).click();
    const editor = page.getByRole("textbox", { name: "agent.json of long" });
    await editor.waitFor();
    expect(await editor.evaluate(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)).toBe(true);
    expect(await page.locator(".cm-line").count()).toBe(1);
    await page.getByRole("button", { name: "Format" }).click();
    await expect.poll(() => page.locator(".cm-line").count()).toBeGreaterThan(5);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByRole("tab", { name: "Form" }).click();
  });
});
