import { type AgentClient, connectAgent } from "@portico/client";
import type { Page } from "../../browser/chromium.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";

/** For both services, so that the console does not ask for a token. */
const TOKEN = "one-token-for-both-services-0123456789abcdef";
/** More than two pages. */
const MANY = 112;
/** Rows that a document may have. */
const MOST_ROWS = 100;

const order = `
name: Order
parameters: { type: object, properties: { order: { type: string }, reason: { type: string } } }
search: { parameters: [order], outputs: [done] }
nodes:
  stop: { type: fail, if: "has(parameters.reason)", with: { message: "\${{ parameters.reason }}" } }
  go: { type: transform, with: { value: 1 } }
outputs: { done: "\${{ parameters.order }}" }
`;
const asking = `
nodes:
  ask: { type: model, with: { provider: main, model: echo-large, prompt: hello } }
`;

describe.skipIf(findChromium() === undefined)("lists of runs in the web console", () => {
  const browser = useChromium();
  let upstream: FakeUpstream;
  let opened: OpenConsole;
  let client: AgentClient;
  beforeAll(async () => {
    upstream = await startFakeUpstream();
    const main = { id: "main", type: "vendor", protocol: "messages", baseUrl: upstream.baseUrl, models: ["echo-large"] };
    opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: {
        "agents/helper/agent.json": { name: "Helper" },
        "agents/broken/agent.json": { name: "Broken", provider: "nobody", model: "none" },
        "workflows/order.yaml": order,
        "workflows/asking.yaml": asking,
        "workflows/quiet.yaml": "nodes: { a: { type: transform, with: { value: 1 } } }",
      },
      config: {
        providers: [{ ...main, credential: { env: "MAIN_KEY" } }],
        prices: { currency: "EUR", models: [{ model: "echo-large", from: "2020-01-01", input: 1e6, output: 1e6 }] },
        workflow: { token: TOKEN, definitionsDir: "workflows" },
        agent: { tokens: [{ token: TOKEN, userId: "owner", role: "owner" }] },
      },
      env: { MAIN_KEY: "sk-test" },
      context: { permissions: ["clipboard-read", "clipboard-write"] },
    });
    client = connectAgent({ baseURL: opened.service.url("agent"), token: TOKEN });
    await client.submit({ agentId: "helper", prompt: "Say hello" }).ended;
    for (let at = 1; at <= MANY; at++) await client.submit({ agentId: "broken", prompt: `Break ${at}` }).ended;
    await opened.signIn(TOKEN);
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });
  afterAll(async () => {
    await client?.close();
    await opened?.[Symbol.asyncDispose]();
    await upstream?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await opened.page.setViewportSize(DESKTOP);
    await opened.page.evaluate(() => localStorage.clear());
    // The page is opened anew, without columns that it remembers.
    await show("#/");
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await show("#/runs");
    await expect.poll(() => names()).toContain(`Break ${MANY}`);
  });

  const show = (hash: string) => opened.page.evaluate((to) => void (location.hash = to), hash);
  const place = (page = opened.page) => page.evaluate(() => location.hash);
  const table = (page = opened.page) => page.getByRole("table", { name: /^Runs/ });
  const names = (page = opened.page) => table(page).locator("tbody th a").allTextContents();
  /** IDs of the shown runs of workflows, which are named by their parameters. */
  const ids = () =>
    table()
      .locator("tbody th a")
      .evaluateAll((all) => all.map((each) => each.getAttribute("href")!.split("/").at(-1)!));
  const columns = (page = opened.page) => table(page).getByRole("columnheader").allTextContents();
  const filter = (label: string) => opened.page.getByRole("search").getByLabel(label, { exact: true });
  const link = (name: string) => opened.page.getByRole("link", { name, exact: true });
  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  const rowOf = (text: string) => table().getByRole("row").filter({ hasText: text });
  const focused = () => opened.page.evaluate(() => document.activeElement?.textContent);
  const breaks = (newest: number, oldest: number) =>
    Array.from({ length: newest - oldest + 1 }, (_, at) => `Break ${newest - at}`);
  const failure = async () => (await client.calls.searchRuns({ query: { q: "break", limit: "1" } })).runs[0]!.failure!.message;
  async function call(path: string, body?: unknown): Promise<any> {
    const answer = await fetch(opened.service.url("workflow") + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { "x-workflow-service-token": TOKEN, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
    return answer.json();
  }
  const started = async (workflowId: string, parameters: object = {}): Promise<string> => {
    const { runId } = await call(`/api/workflow/webhook?id=${workflowId}`, parameters);
    await expect.poll(async () => (await call(`/api/workflow/${workflowId}/runs/${runId}`)).completedAt).toBeDefined();
    return runId;
  };

  it("show each run once on pages of at most 100 rows, to the oldest and back, while runs begin", async () => {
    const pages = [await names()];
    expect(await link("Newer").count()).toBe(0);
    while ((await link("Older").count()) > 0) {
      await link("Older").click();
      await expect.poll(async () => (await names())[0]).not.toBe(pages.at(-1)![0]);
      pages.push(await names());
    }
    // A last page that is not full may be followed by nothing.
    expect(pages.flat()).toEqual([...breaks(MANY, 1), "Say hello"]);
    for (const page of pages) expect(page.length).toBeLessThanOrEqual(MOST_ROWS);
    expect(await opened.page.locator("tbody tr").count()).toBeLessThanOrEqual(MOST_ROWS);

    await client.submit({ agentId: "broken", prompt: "Late" }).ended;
    try {
      const last = pages.at(-1)!;
      await link("Newer").click();
      await expect.poll(async () => (await names()).at(-1)).not.toBe(last.at(-1));
      const before = await names();
      expect([...before, ...last]).toEqual(pages.flat().slice(-(before.length + last.length)));
      await link("Newest").click();
      await expect.poll(async () => (await names()).slice(0, 2)).toEqual(["Late", `Break ${MANY}`]);
      expect(await place()).toBe("#/runs");
    } finally {
      const { runs } = await client.calls.searchRuns({ query: { q: "late" } });
      await client.calls.clear({ params: { id: runs[0]!.conversation_id! } });
    }
    await expect.poll(async () => (await names())[0]).toBe(`Break ${MANY}`);
  });

  it("going back to newer runs ends at the newest page, which is whole", async () => {
    await link("Older").click();
    await expect.poll(async () => (await names())[0]).toBe(`Break ${MANY - 50}`);
    expect(await place()).toMatch(/^#\/runs\?after=[\w-]+$/);
    await link("Newer").click();
    await expect.poll(() => place()).toBe("#/runs");
    await expect.poll(() => names()).toEqual(breaks(MANY, MANY - 49));
  });

  it("have filters, columns and the page in the address: back and forward work, and a copied link shows the same", async () => {
    const { page } = opened;
    await filter("Words").fill("break");
    await filter("Words").press("Enter");
    await filter("Outcome").selectOption("Failed");
    await filter("Started").selectOption("The last day");
    await expect.poll(() => place()).toBe("#/runs?q=break&outcome=failed&since=1d");
    await link("Older").click();
    await expect.poll(async () => (await names())[0]).toBe(`Break ${MANY - 50}`);
    await page.goBack();
    await expect.poll(async () => (await names())[0]).toBe(`Break ${MANY}`);
    await page.goBack();
    await expect.poll(() => place()).toBe("#/runs?q=break&outcome=failed");
    expect(await filter("Started").inputValue()).toBe("");
    await page.goForward();
    await page.goForward();
    await expect.poll(async () => (await names())[0]).toBe(`Break ${MANY - 50}`);
    expect(await filter("Started").inputValue()).toBe("1d");

    await button("Columns").click();
    for (const name of ["Tokens", "Cost"]) await page.getByRole("checkbox", { name, exact: true }).check();
    await page.getByRole("checkbox", { name: "From", exact: true }).uncheck();
    const shown = ["Run", "Outcome", "Agent", "Duration", "Tokens", "Cost", "Started", "Run again"];
    await expect.poll(() => columns()).toEqual(shown);
    await button("Copy link").click();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    expect(copied).toContain("columns=outcome,agent,duration,tokens,cost,started");
    const context = await browser().newContext();
    try {
      const other: Page = await context.newPage();
      await other.goto(copied);
      await other.getByLabel("Instance token").fill(TOKEN);
      await other.getByRole("button", { name: "Sign in" }).click();
      await expect.poll(() => names(other)).toEqual(await names());
      expect(await columns(other)).toEqual(shown);
      expect(await place(other)).toBe(await place());
    } finally {
      await context.close();
    }
  });

  it("lead to the newest page from an address whose cursor is of another search", async () => {
    await show("#/");
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await show("#/runs?q=break&after=nonsense");
    await opened.page.getByRole("alert").getByText("after must be the next of a page of the same search").waitFor();
    await link("Show the newest runs").click();
    await expect.poll(() => place()).toBe("#/runs?q=break");
    await expect.poll(async () => (await names())[0]).toBe(`Break ${MANY}`);
    await expect.poll(() => opened.page.getByRole("alert").count()).toBe(0);
  });

  it("remember the columns in this browser, also without them in the address", async () => {
    const { page } = opened;
    await button("Columns").click();
    await page.getByRole("checkbox", { name: "Error", exact: true }).check();
    await expect.poll(() => place()).toMatch(/^#\/runs\?columns=/);
    await opened.goTo("Overview");
    await opened.goTo("Runs");
    expect(await place()).toBe("#/runs");
    await expect.poll(() => columns()).toContain("Error");
    await rowOf("Break 100")
      .getByText(await failure())
      .waitFor();
    await button("Columns").click();
    await page.getByRole("checkbox", { name: "Error", exact: true }).uncheck();
    await expect.poll(() => columns()).not.toContain("Error");
    expect(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes("columns")))).toEqual([]);
  });

  it("show duration, tokens, cost and error of runs of agents", async () => {
    await show("#/runs?agent_id=helper&columns=duration,tokens,cost,error");
    const { runs } = await client.calls.searchRuns({ query: { agent_id: "helper" } });
    const { inputTokens = 0, outputTokens = 0, currency } = runs[0]!.usage!;
    const all = inputTokens + outputTokens;
    expect([all > 0, currency]).toEqual([true, "EUR"]);
    const row = rowOf("Say hello");
    await row.getByText(`${all}.00 EUR`).waitFor();
    await row.getByText(all.toLocaleString("en"), { exact: true }).waitFor();
    expect(await row.locator('[data-title="Duration"]').textContent()).toMatch(/\d (ms|s)$/);
    await show("#/runs?q=break+7&columns=duration,error");
    await expect.poll(() => names()).toEqual(["Break 7"]);
    await rowOf("Break 7")
      .getByText(await failure())
      .waitFor();
  });

  it("say the code of the error below the status of a failed run", async () => {
    const code = (await client.calls.searchRuns({ query: { q: "break", limit: "1" } })).runs[0]!.failure!.code;
    const status = rowOf(`Break ${MANY}`).locator('[data-title="Outcome"]');
    expect(await status.textContent()).toMatch(new RegExp(`Failed\\s+${code.replaceAll("_", " ")}$`));
  });

  it("an agent whose provider is not configured cannot run, and its list and page say what to do", async () => {
    const { page } = opened;
    await show("#/agents");
    const row = page.getByRole("table", { name: "Agents" }).getByRole("row").filter({ hasText: "Broken" });
    await row.getByText("Cannot run").waitFor();
    await row
      .getByText("This instance does not have its provider: its turns fail until you fix this. Choose another provider")
      .waitFor();
    await page.getByText("2 agents, 1 of them not usable").waitFor();
    await row.getByRole("link", { name: "Broken" }).click();
    await page
      .getByRole("alert")
      .getByText("Choose another provider in its agent.json, or configure it in this instance.")
      .waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("show each filter as a chip that removes it, and say the next step if no run matches", async () => {
    const { page } = opened;
    await show("#/runs?q=break&agent_id=helper&from=2020-01-01T00:00Z&status=bogus");
    await page.getByText("No matching run").waitFor();
    const chips = page.getByRole("list", { name: "Filters" }).getByRole("link");
    expect(await chips.allTextContents()).toEqual([
      "Remove the filter Words: break",
      "Remove the filter Agent: helper",
      expect.stringMatching(/^Remove the filter From: .*2020/),
    ]);
    expect(await filter("Started").inputValue()).toBe("between");
    expect(await findingsInEveryLook(page)).toEqual([]);
    await chips.filter({ hasText: "Agent" }).click();
    await expect.poll(async () => (await names())[0]).toBe(`Break ${MANY}`);
    expect(await place()).toBe("#/runs?q=break&from=2020-01-01T00%3A00Z");
    await filter("From").fill("2999-01-01T00:00");
    await page.getByText("No matching run").waitFor();
    await link("Show all runs").click();
    await expect.poll(() => place()).toBe("#/runs");
    expect(await chips.count()).toBe(0);
  });

  it("find what is rare behind many others, as far as the user searches", async () => {
    await show("#/runs?kind=background");
    await opened.page.getByText("No matching run").waitFor();
    const { runs } = await client.calls.searchRuns({ query: { agent_id: "helper" } });
    const params = { id: runs[0]!.run_id };
    await client.calls.changeRun({ params, body: { archived: true } });
    try {
      await show("#/runs?user_id=owner&archived=only");
      await expect.poll(() => names()).toEqual(["Say hello"]);
      await filter("Archived").selectOption("Hidden");
      await expect.poll(async () => (await names())[0]).toBe(`Break ${MANY}`);
    } finally {
      await client.calls.changeRun({ params, body: { archived: false } });
    }
  });

  it("are walked with the arrow keys, beyond the ends of a page, and Enter opens a run", async () => {
    const { page } = opened;
    await table()
      .getByRole("link", { name: `Break ${MANY}` })
      .focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    expect(await focused()).toBe(`Break ${MANY - 2}`);
    await page.keyboard.press("End");
    expect(await focused()).toBe(`Break ${MANY - 49}`);
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => focused()).toBe(`Break ${MANY - 50}`);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Home");
    expect(await focused()).toBe(`Break ${MANY - 50}`);
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => place()).toBe("#/runs");
    await expect.poll(() => focused()).toBe(`Break ${MANY - 49}`);
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => focused()).toBe(`Break ${MANY - 48}`);
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowUp");
    expect(await focused()).toBe(`Break ${MANY}`);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: `Break ${MANY}` }).waitFor();
    await page.goBack();
    await expect.poll(async () => (await names())[0]).toBe(`Break ${MANY}`);
  });

  it("are cards on a phone, with filters and columns, and have no findings in any look", async () => {
    const { page } = opened;
    await show("#/runs?outcome=failed&columns=outcome,agent,user,source,error,duration,tokens,cost,started");
    await button("Columns").click();
    await button("More filters").click();
    await page.setViewportSize(PHONE);
    const row = rowOf(`Break ${MANY}`);
    await row.waitFor();
    const [card, first, second] = await Promise.all([
      row.boundingBox(),
      row.getByRole("cell").nth(0).boundingBox(),
      row.getByRole("cell").nth(1).boundingBox(),
    ]);
    expect(second!.y).toBeGreaterThanOrEqual(first!.y + first!.height);
    expect(card!.width).toBeLessThanOrEqual(PHONE.width);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(PHONE.width);
    await page.setViewportSize(DESKTOP);
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("show the runs of all workflows, by workflow, parameter, output, time, status and words, with tokens and cost", async () => {
    const { page } = opened;
    const first = await started("order", { order: "A-1" });
    const failed = await started("order", { order: "A-2", reason: "The lemon is sour" });
    const asked = await started("asking");
    await page.getByRole("tab", { name: "Of workflows" }).click();
    await expect.poll(() => place()).toBe("#/runs?of=workflows");
    await expect.poll(async () => (await ids()).slice(0, 3)).toEqual([asked, failed, first]);
    await rowOf(failed).getByText("The lemon is sour").waitFor();
    await filter("Workflow").selectOption("Order");
    await expect.poll(() => ids()).not.toContain(asked);
    await button("More filters").click();
    await filter("Parameter").fill("A-1");
    await filter("Parameter").press("Enter");
    await page.getByText("Write name=value").waitFor();
    await filter("Parameter").fill("order=A-1");
    await filter("Parameter").press("Enter");
    await expect.poll(() => place()).toBe("#/runs?of=workflows&workflow=order&parameter=order%3DA-1");
    await expect.poll(async () => new Set(await ids())).toEqual(new Set([first]));
    await filter("Output").fill("nothing=1");
    await filter("Output").press("Enter");
    await page.getByText("does not declare nothing in search.outputs").waitFor();
    await page.getByRole("link", { name: "Remove the filter Output: nothing=1" }).click();
    await expect.poll(() => ids()).toEqual([first]);
    await link("Clear filters").click();
    await filter("Words of the error").fill("SOUR lemon");
    await filter("Words of the error").press("Enter");
    await expect.poll(() => ids()).not.toContain(asked);
    expect(await ids()).toContain(failed);
    await show("#/runs?of=workflows&workflow=asking&columns=tokens,cost,duration");
    const { runs } = await call("/api/workflow/runs/search?workflowId=asking");
    const all = runs[0].usage.inputTokens + runs[0].usage.outputTokens;
    await rowOf(asked).getByText(`${all}.00 EUR`).waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    await rowOf(asked).getByRole("link", { name: asked }).click();
    await page.getByRole("heading", { level: 1 }).filter({ hasText: "asking" }).waitFor();
  });

  it("have values that end at one place in the cards of a phone", async () => {
    const { page } = opened;
    const failed = await started("order", {
      order: "A-3",
      reason: "The lemon is sour, and so is the lime, of which there are several in the basket",
    });
    await show("#/runs?of=workflows&columns=workflow,status,user,parameters,outputs,nodes,duration,started,error");
    await page.setViewportSize(PHONE);
    await rowOf(failed).getByText("order=A-3").first().waitFor();
    const ends = await rowOf(failed)
      .getByRole("cell")
      .evaluateAll((cells) =>
        cells.flatMap((cell) => {
          const rights: number[] = [];
          const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
          const written = document.createRange();
          while (texts.nextNode()) {
            written.selectNodeContents(texts.currentNode);
            rights.push(...[...written.getClientRects()].map(({ right }) => Math.round(right)));
          }
          return rights.length === 0 ? [] : [Math.max(...rights)];
        }),
      );
    expect(ends.length).toBeGreaterThan(5);
    // The badge of the status has a padding.
    expect(Math.max(...ends) - Math.min(...ends)).toBeLessThanOrEqual(10);
  });

  it("page through the runs of one workflow, and offer its first start", async () => {
    await show("#/workflows/quiet");
    await button("Start the workflow").click();
    await opened.page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    for (let at = 0; at < 52; at++) await call("/api/workflow/webhook?id=order", { order: `B-${at}` });
    const all = async () =>
      (await call("/api/workflow/runs/search?workflowId=order&limit=200")).runs.map(({ runId }: { runId: string }) => runId);
    const wanted: string[] = await all();
    await show("#/workflows/order");
    await expect.poll(() => ids()).toEqual(wanted.slice(0, 50));
    expect(await columns()).not.toContain("Workflow");
    await link("Older").click();
    await expect.poll(() => ids()).toEqual(wanted.slice(50));
    await opened.page.reload();
    await opened.signIn(TOKEN);
    await expect.poll(() => ids()).toEqual(wanted.slice(50));
    await link("Newer").click();
    await expect.poll(() => place()).toBe("#/workflows/order");
    await expect.poll(() => ids()).toEqual(wanted.slice(0, 50));
  });
});
