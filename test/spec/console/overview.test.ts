import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectAgent } from "@portico/client";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";

describe.skipIf(findChromium() === undefined)("the overview of the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      // Its model does not exist: every turn of it fails.
      files: {
        "agents/broken/agent.json": { name: "Broken", provider: "nobody", model: "none" },
        "agents/helper/agent.json": { name: "Helper" },
        "workflows/sinking.yaml": "{ name: Sinking, nodes: { down: { type: fail, with: { message: No } } } }",
      },
    });
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const area = (title: string) =>
    opened.page.getByRole("listitem").filter({ has: opened.page.getByRole("heading", { name: title }) });
  /** The number below a label. */
  const figure = (label: string) => opened.page.locator("dl > div").filter({ hasText: label }).locator("dd").first();

  it("shows each area with its address and its health", async () => {
    for (const [title, surface] of [
      ["Agent service", "agent"],
      ["Workflow service", "workflow"],
      ["Model proxy", "proxy"],
    ] as const) {
      await area(title).getByText(opened.service.url(surface), { exact: true }).waitFor();
    }
    await area("Agent service").getByText("Ready", { exact: true }).waitFor();
    await area("Workflow service").getByText("Ready", { exact: true }).waitFor();
    await area("Model proxy").getByText("Listening", { exact: true }).waitFor();
  });

  it("says its version and instance at its end", async () => {
    const { serverInstanceId, version } = await opened.call("GET", "/api/handshake");
    const last = opened.page.getByRole("main").locator("p").last();
    expect(await last.textContent()).toBe(`Portico ${version}, instance ${serverInstanceId}`);
  });

  it("shows three steps until the first message, each with its button", async () => {
    const { page } = opened;
    const steps = page.getByRole("region", { name: "Getting started" }).getByRole("listitem");
    await expect.poll(() => steps.count()).toBe(3);
    expect(await steps.getByRole("heading").allTextContents()).toEqual([
      "Connect a model: to do",
      "Create an agent: done",
      "Send a message: to do",
    ]);
    expect(await findingsInEveryLook(page)).toEqual([]);
    expect(await steps.getByRole("link").evaluateAll((all) => all.map((link) => link.getAttribute("href")))).toEqual([
      "#/providers",
      "#/agents/helper",
    ]);
  });

  it("counts requests to the service while the page is open", async () => {
    const before = Number(await figure("Requests").textContent());
    for (let asked = 0; asked < 20; asked++) await opened.call("GET", "/api/agents");
    await expect
      .poll(async () => Number(await figure("Requests").textContent()), { timeout: 30_000 })
      .toBeGreaterThan(before + 19);
    expect(await figure("Memory").textContent()).toMatch(/^\d+ MB$/);
  });

  it("says what failed since the last look, by cause, with the newest run; a cause leads to its runs", async () => {
    const { page } = opened;
    await page.getByText("No run has failed").waitFor();
    await using client = connectAgent({ baseURL: opened.service.url("agent"), token: opened.token });
    for (const prompt of ["Hello", "Hello again"])
      expect((await client.submit({ agentId: "broken", prompt }).ended).status).toBe("failed");
    const row = page.getByRole("table", { name: "Failures by cause" }).getByRole("row").filter({ hasText: "Agent broken" });
    await row.getByRole("cell", { name: "2", exact: true }).waitFor({ timeout: 30_000 });
    const { runs } = await opened.call("GET", "/api/runs");
    expect(await row.getByRole("link", { name: "Hello again" }).getAttribute("href")).toBe(`#/runs/${runs[0].run_id}`);
    await row.getByText(runs[0].failure.message).waitFor();
    await row.getByRole("link", { name: "Provider unavailable" }).click();
    const table = page.getByRole("table", { name: "Runs of agents" });
    await expect.poll(() => table.getByRole("link").allTextContents()).toEqual(["Hello again", "Hello"]);
    const counts = page.getByRole("region", { name: "Counts of the runs" });
    expect(await counts.getByText("2 runs").isVisible()).toBe(true);
    await counts.getByRole("link", { name: "broken (2)" }).waitFor();
    await page.goBack();
    await row.waitFor();
    // The list of steps has done its work.
    expect(await page.getByRole("region", { name: "Getting started" }).count()).toBe(0);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByRole("button", { name: "Mark as seen" }).click();
    await page.getByText("No run has failed").waitFor();
    await page.reload();
    await opened.signIn();
    await page.getByText("No run has failed").waitFor();
  });

  it("lists the workflows whose last run failed, to an owner without another token", async () => {
    const { workflowServiceToken } = JSON.parse(opened.service.read("credentials.json")) as Record<string, string>;
    const headers = { "x-workflow-service-token": workflowServiceToken! };
    const url = `${opened.service.url("workflow")}/api/workflow/webhook?id=sinking`;
    const { runId } = (await (await fetch(url, { method: "POST", headers })).json()) as { runId: string };
    const row = opened.page.getByRole("table", { name: "Failed workflows" }).getByRole("row").filter({ hasText: "Sinking" });
    await row.waitFor({ timeout: 30_000 });
    expect(await row.getByRole("link", { name: runId }).getAttribute("href")).toBe(`#/workflows/sinking/${runId}`);
  });

  it("counts the model calls of the proxy, of agents and of workflow nodes", async () => {
    const before = Number(await figure("Model calls").textContent());
    await using client = connectAgent({ baseURL: opened.service.url("agent"), token: opened.token });
    expect((await client.submit({ agentId: "helper", prompt: "Hello" }).ended).status).toBe("completed");
    const headers = { "content-type": "application/json", "x-api-key": await opened.service.token("demo") };
    const body = JSON.stringify({ model: "demo", max_tokens: 9, messages: [{ role: "user", content: "Hello" }] });
    await (await fetch(`${opened.service.url("proxy")}/messages`, { method: "POST", headers, body })).text();
    await expect.poll(async () => Number(await figure("Model calls").textContent()), { timeout: 30_000 }).toBe(before + 2);
    expect(Number(await figure("Tokens out").textContent())).toBeGreaterThan(0);
  });

  // The last: nothing answers after it.
  it("shows the owner small charts of the last day, whose titles lead to the measurements", async () => {
    const { page } = opened;
    // A visit loads the numbers at once.
    await opened.goTo("Runs");
    await opened.goTo("Overview");
    const day = page.getByRole("region", { name: "The last day" });
    for (const title of ["Calls", "Failures", "Tokens", "Latency"])
      await day.getByRole("img", { name: new RegExp(`^${title} over the last day`) }).waitFor();
    await expect.poll(() => day.locator('[data-drawn="true"]').count()).toBe(4);
    // Those of the agent's turn, whose provider does not exist, and of the workflow run above.
    await expect.poll(() => day.getByText(/^\d+ in all$/).textContent()).not.toBe("0 in all");
    expect(await findingsInEveryLook(page)).toEqual([]);
    await day.getByRole("link", { name: "Failures" }).click();
    await page.getByRole("heading", { level: 1, name: "Measurements" }).waitFor();
    expect(new URL(page.url()).hash).toBe("#/measurements?show=all&range=day");
    expect(await page.getByLabel("Show", { exact: true }).inputValue()).toBe("all");
    await page.goBack();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });

  it("tells users who are not owners what they may use, and shows them no charts", async () => {
    const token = "member-token-0123456789abcdef012345678";
    await using other = await openConsole({
      browser: browser(),
      config: { agent: { tokens: [{ token, userId: "mia", role: "member" }] } },
      isSignedIn: false,
    });
    const asked: string[] = [];
    other.page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await other.signIn(token);
    await other.page.getByRole("heading", { level: 2, name: "Since the start" }).waitFor();
    await expect.poll(() => asked).toContain("/api/counters");
    expect(await other.page.getByRole("region", { name: "The last day" }).count()).toBe(0);
    // Nothing that only refuses.
    const links = other.page.getByRole("navigation", { name: "Pages" }).getByRole("link");
    expect((await links.allTextContents()).map((text) => text.trim())).toEqual([
      ...["Overview", "Agents", "Workflows", "Runs", "Measurements", "Approvals"],
    ]);
    const part = other.page.getByRole("region", { name: "What you may use" });
    await part.getByText("You may use workflows if you have the token of the workflow service.").waitFor();
    await part.getByText("In the last 30 days, you used 0 calls of models with 0 tokens").waitFor();
    expect(await part.getByRole("listitem").first().textContent()).toMatch(/No agent is ready yet|You may talk to \d+ agents?: /);
    expect(await findingsInEveryLook(other.page)).toEqual([]);
    expect(asked.filter((path) => path.startsWith("/api/measurements"))).toEqual([]);
  });

  it("says of every area that nothing answers once the process has died, the model proxy included", async () => {
    opened.service.signal("SIGKILL");
    for (const title of ["Agent service", "Workflow service", "Model proxy"])
      await area(title).getByText("No answer", { exact: true }).waitFor({ timeout: 30_000 });
    await opened.page.getByText("The service does not answer").first().waitFor({ timeout: 30_000 });
    expect(await opened.page.getByText(/fetch|NetworkError|JSON|undefined/i).allTextContents()).toEqual([]);
  });
});
