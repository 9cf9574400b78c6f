import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type AgentClient, connectAgent } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";
import { echoModel } from "../../harness/echo-model.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { createGate } from "../../harness/gate.ts";

/** The echo model calls the tool that it is told of, with what stands behind its name. */
const TASK = 'DelegateToAgent {"agentId":"worker","prompt":"Count sheep"}';

describe.skipIf(findChromium() === undefined)("runs in the web console", () => {
  const browser = useChromium();
  let upstream: FakeUpstream;
  let opened: OpenConsole;
  let client: AgentClient;
  beforeAll(async () => {
    upstream = await startFakeUpstream();
    const main = { id: "main", type: "vendor", protocol: "messages", baseUrl: upstream.baseUrl, models: ["echo-large"] };
    opened = await openConsole({
      browser: browser(),
      files: {
        "agents/helper/agent.json": { name: "Helper" },
        "agents/boss/agent.json": { name: "Boss", tools: ["DelegateToAgent"] },
        "agents/worker/agent.json": { name: "Worker" },
        "agents/slow/agent.json": { name: "Slow" },
        "agents/broken/agent.json": { name: "Broken", provider: "nobody", model: "none" },
      },
      config: { providers: [{ ...main, credential: { env: "MAIN_KEY" } }] },
      env: { MAIN_KEY: "sk-test" },
    });
    client = connectAgent({ baseURL: opened.service.url("agent"), token: opened.token });
    for (const [agentId, prompt] of [
      ["helper", "Say hello"],
      ["boss", TASK],
      ["broken", "Break"],
    ] as const)
      await client.submit({ agentId, prompt }).ended;
    await opened.goTo("Runs");
  });
  afterAll(async () => {
    await client?.close();
    await opened?.[Symbol.asyncDispose]();
    await upstream.close();
  });

  const list = (name = "Runs of agents") => opened.page.getByRole("table", { name });
  /** Titles of the rows, in their order. */
  const titles = () => list().getByRole("link").allTextContents();
  const filter = (label: string) => opened.page.getByRole("search").getByLabel(label, { exact: true });
  const turns = () => opened.page.getByRole("article");
  const figure = (label: string) => opened.page.locator("dl > div").filter({ hasText: label }).locator("dd").first();
  const runsOf = async (query: string) => (await opened.call("GET", `/api/runs?${query}`)).runs;
  async function show(runId: string) {
    await opened.page.evaluate((id) => (location.hash = `#/runs/${id}`), runId);
    await opened.page.getByRole("heading", { level: 1 }).waitFor();
  }

  it("lists them newest first, with their agents, where they came from, and why they failed", async () => {
    await expect.poll(() => titles()).toEqual(["Break", "Count sheep", TASK, "Say hello"]);
    const rows = list().getByRole("row");
    expect(await rows.nth(1).textContent()).toMatch(/Failed.*provider unavailable.*broken.*Conversation/);
    expect(await rows.nth(2).textContent()).toMatch(/Completed.*worker.*Delegated by boss/);
    expect(await rows.nth(4).textContent()).toMatch(/Completed.*helper/);
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
  });

  it("filters as the service does, by agent, delegating agent and parent run; the address contains the filters", async () => {
    const { page } = opened;
    await filter("Agent").selectOption("helper");
    await expect.poll(() => titles()).toEqual(["Say hello"]);
    expect(await page.evaluate(() => location.hash)).toBe("#/runs?agent_id=helper");
    await page.getByRole("link", { name: "Clear filters" }).click();
    await page.getByRole("button", { name: "More filters" }).click();
    await filter("Delegated by").selectOption("boss");
    await expect.poll(() => titles()).toEqual(["Count sheep"]);
    const [child] = await runsOf("delegated_by=boss");
    await page.getByRole("link", { name: "Clear filters" }).click();
    await filter("Parent run").fill(child.delegation.parentRunId);
    await filter("Parent run").press("Enter");
    await expect
      .poll(() =>
        list()
          .getByRole("link")
          .evaluateAll((all) => all.map((each) => each.getAttribute("href"))),
      )
      .toEqual([`#/runs/${child.run_id}`]);
    await page.getByRole("link", { name: "Clear filters" }).click();
    await expect.poll(async () => (await titles()).length).toBe(4);
  });

  it("filters by outcome", async () => {
    const { page } = opened;
    await filter("Outcome").selectOption("Failed");
    await expect.poll(() => titles()).toEqual(["Break"]);
    await filter("Outcome").selectOption("Running");
    await page.getByText("No matching run").waitFor();
    await page.getByRole("link", { name: "Clear filters" }).click();
  });

  it("finds runs by words of their titles and errors; the address contains the words", async () => {
    const { page } = opened;
    await filter("Words").fill("SHEEP count");
    await filter("Words").press("Enter");
    await expect.poll(() => titles()).toEqual(["Count sheep", TASK]);
    expect(await page.evaluate(() => location.hash)).toBe("#/runs?q=SHEEP+count");
    await filter("Delegated by").selectOption("boss");
    await expect.poll(() => titles()).toEqual(["Count sheep"]);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByRole("link", { name: "Clear filters" }).click();
    await filter("Words").fill("break error");
    await filter("Words").press("Enter");
    await filter("Outcome").selectOption("Failed");
    await expect.poll(() => titles()).toEqual(["Break"]);
    await filter("Words").fill("elephant");
    await filter("Words").press("Enter");
    await page.getByText("No matching run").waitFor();
    await page.getByRole("link", { name: "Clear filters" }).click();
    await expect.poll(async () => (await titles()).length).toBe(4);
  });

  it("shows a run with its turns, its tool calls and its usage, and links to what belongs to it", async () => {
    const { page } = opened;
    const [boss] = await runsOf("agent_id=boss");
    await list().getByRole("link", { name: TASK }).click();
    await page.getByRole("heading", { level: 1, name: TASK }).waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("page-title");

    const { receipts } = await opened.call("GET", `/api/runs/${boss.run_id}/receipt`);
    await turns().getByText("Success").waitFor();
    expect(await turns().getByRole("group", { name: "Input" }).textContent()).toBe(TASK);
    expect(await turns().getByRole("group", { name: "Output" }).textContent()).toBe(receipts[0].output);
    expect(await figure("Tokens in").textContent()).toBe(`${receipts[0].usage.inputTokens}`);
    expect(await figure("Model calls").textContent()).toBe("2");
    await turns().locator("summary").click();
    const shown = await turns().getByRole("group", { name: "arguments of DelegateToAgent" }).textContent();
    expect(JSON.parse(shown!)).toEqual({ agentId: "worker", prompt: "Count sheep" });

    const conversation = page.getByRole("link", { name: "Open", exact: true });
    expect(await conversation.getAttribute("href")).toBe(`#/agents/boss/${boss.conversation_id}`);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await list("Delegated runs").getByRole("link").click();
    await page.getByRole("link", { name: "its run" }).click();
    await page.getByRole("button", { name: "Copy ID of the run" }).waitFor();
    expect(await page.evaluate(() => location.hash)).toBe(`#/runs/${boss.run_id}`);
  });

  it("shows how a turn spent its time, on a phone too", async () => {
    const { page } = opened;
    const [boss] = await runsOf("agent_id=boss");
    await show(boss.run_id);
    const parts = () => page.getByRole("tree", { name: "Parts of the turn" }).getByRole("treeitem");
    const names = [
      "Accepted",
      "Waited in the queue",
      "Began",
      "Model echo-large",
      "Tool DelegateToAgent",
      "Model echo-large",
      "Delivered",
    ];
    await expect
      .poll(async () => (await parts().allTextContents()).map((text) => names.find((name) => text.trim().startsWith(name))))
      .toEqual(names);
    expect(await parts().nth(3).textContent()).toMatch(/\d+ ms, after .* · first token after \d+ ms · \d+ tokens in · \d+ out/);
    const widths = await parts()
      .locator(".bar")
      .evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
    expect(widths.every((width) => width > 0)).toBe(true);
    // Both parts of a model call, and nothing beside the page.
    const size = page.viewportSize()!;
    await page.setViewportSize({ width: 375, height: 800 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
    await page.setViewportSize(size);
    expect(await findingsInEveryLook(page)).toEqual([]);

    await client.submit({ agentId: "boss", sessionId: boss.session_id, prompt: "Thanks" }).ended;
    await expect.poll(() => page.getByLabel("Turn", { exact: true }).locator("option").count()).toBe(2);
    const newest = (await opened.call("GET", `/api/runs/${boss.run_id}/trace`)).turns.at(-1);
    expect(await page.getByLabel("Turn", { exact: true }).inputValue()).toBe(newest.receipt_id);
  });

  it("shows why a turn failed", async () => {
    const [broken] = await runsOf("agent_id=broken");
    await show(broken.run_id);
    const { receipts } = await opened.call("GET", `/api/runs/${broken.run_id}/receipt`);
    await turns().getByText(receipts[0].failure.message).waitFor();
    // At the top of the page, before the turns.
    await opened.page.locator("dd .failure").filter({ hasText: receipts[0].failure.message }).waitFor();
  });

  it("leads from a failed turn to its conversation, with the message as an unsent draft, once and after another draft", async () => {
    const { page } = opened;
    const [broken] = await runsOf("agent_id=broken");
    const message = page.getByRole("textbox", { name: "Message to Broken" });
    const sendAgain = async () => {
      await show(broken.run_id);
      await turns().getByRole("button", { name: "Send again" }).click();
      await message.waitFor();
    };
    await sendAgain();
    expect(await page.evaluate(() => location.hash)).toBe(`#/agents/broken/${broken.conversation_id}`);
    await expect.poll(() => message.inputValue()).toBe("Break");
    await sendAgain();
    expect(await message.inputValue()).toBe("Break");
    await message.fill("Please");
    await sendAgain();
    await sendAgain();
    expect(await message.inputValue()).toBe("Please\n\nBreak");
    await message.fill("");
    const { receipts } = await opened.call("GET", `/api/runs/${broken.run_id}/receipt`);
    expect(receipts.length).toBe(1);
    await show((await runsOf("agent_id=helper"))[0].run_id);
    await turns().getByText("Success").waitFor();
    expect(await turns().getByRole("button", { name: "Send again" }).count()).toBe(0);
  });

  it("becomes a test, which the command line passes; a run that a test cannot repeat says so", async () => {
    const { page, service } = opened;
    const asTest = page.getByRole("button", { name: "Save as test", exact: true });
    const dialog = page.getByRole("dialog", { name: "This run as a test" });
    const [told] = await runsOf("agent_id=helper&limit=1");
    await show(told.run_id);
    await asTest.click();
    const yaml = (await dialog.getByRole("group", { name: "file of cases" }).textContent())!;
    expect(yaml).toContain("Say hello");
    expect(await findingsInEveryLook(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Close" }).click();
    writeFileSync(join(service.cwd, "case.yaml"), yaml);
    expect(await service.run("agent", "test", "case.yaml")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("1 passed"),
    });
    const [broken] = await runsOf("agent_id=broken&limit=1");
    await show(broken.run_id);
    await asTest.click();
    await dialog.getByText("A turn failed in a way that cases cannot repeat").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
  });

  it("follows a run that executes, and one that was stopped says so", async () => {
    const { page } = opened;
    const gate = createGate();
    upstream.answerNext(async (exchange) => {
      await gate.opened;
      await echoModel({ models: ["echo-large"] })(exchange);
    });
    const query = client.submit({ agentId: "slow", prompt: "Take your time" });
    const { runId, sessionId } = (await query.started)!;
    await show(runId!);
    await page.getByText("A turn is under way").waitFor();
    expect(await turns().count()).toBe(0);
    gate.open();
    await turns().getByText("Success").waitFor();
    await page.getByText("A turn is under way").waitFor({ state: "detached" });

    upstream.answerNext(({ over }) => over);
    const asked = upstream.request(upstream.requests.length + 1);
    const stopped = client.submit({ agentId: "slow", sessionId, prompt: "Never mind" });
    await page.getByText("A turn is under way").waitFor();
    // The page may show the turn before the client has heard of it, and before the model is asked.
    await Promise.all([stopped.started, asked]);
    stopped.abort();
    await turns().getByText("Interrupted: stopped by its user").waitFor();
    await turns().getByRole("button", { name: "Send again" }).waitFor();
    await page.getByText("Stopped", { exact: true }).waitFor();
    expect(await figure("Turns").textContent()).toBe("2");
  });

  it("pages back through receipts, the newest first, and counts those that are damaged (2.12)", async () => {
    const { page } = opened;
    const [run] = await runsOf("agent_id=helper");
    for (let turn = 2; turn <= 24; turn++)
      await client.submit({ agentId: "helper", sessionId: run.session_id, prompt: `Turn ${turn}` }).ended;
    // The service writes to the same file.
    using database = new DatabaseSync(`${opened.service.dataDir}/records.sqlite`, { timeout: 30_000 });
    const spoil = database.prepare(`UPDATE "_log_entries" SET entry = '{' WHERE entry LIKE '%"goal":"Turn 3"%'`);
    expect(spoil.run().changes).toBe(1);

    await show(run.run_id);
    const inputs = () => turns().getByRole("group", { name: "Input" }).allTextContents();
    const numbered = (newest: number, oldest: number) =>
      Array.from({ length: newest - oldest + 1 }, (_, index) => `Turn ${newest - index}`);
    await expect.poll(inputs).toEqual(numbered(24, 5));
    await page.getByText("of the 20 turns that are shown").waitFor();
    expect(await figure("Turns").textContent()).toBe("24");

    // What is written meanwhile moves the pages, and nothing is lost or shown twice.
    await client.submit({ agentId: "helper", sessionId: run.session_id, prompt: "Turn 25" }).ended;
    await expect.poll(inputs, { timeout: 30_000 }).toEqual(numbered(25, 5));
    await page.getByRole("button", { name: "Show older turns" }).click();
    await expect.poll(inputs).toEqual([...numbered(25, 4), "Turn 2", "Say hello"]);
    await page.getByText("1 record was skipped").waitFor();
    expect(await page.getByRole("button", { name: "Show older turns" }).count()).toBe(0);
    const { receipts } = await opened.call("GET", `/api/runs/${run.run_id}/receipt`);
    const output = receipts.reduce((sum: number, each: any) => sum + each.usage.outputTokens, 0);
    expect(await figure("Tokens out").textContent()).toBe(`${output}`);
  });

  it("is renamed, archived and taken back", async () => {
    const { page } = opened;
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByLabel("Title").fill("Greeting");
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
    await page.getByRole("heading", { level: 1, name: "Greeting" }).waitFor();
    await page.getByRole("button", { name: "Archive" }).click();
    await page.getByRole("button", { name: "Unarchive" }).waitFor();
    const [run] = await runsOf("agent_id=helper");
    expect([run.title, typeof run.archived_at]).toEqual(["Greeting", "string"]);

    await opened.goTo("Runs");
    expect(await titles()).not.toContain("Greeting");
    if ((await filter("Archived").count()) === 0) await page.getByRole("button", { name: "More filters" }).click();
    await filter("Archived").selectOption("Only archived");
    await list().getByRole("link", { name: "Greeting" }).click();
    await page.getByRole("button", { name: "Unarchive" }).click();
    await page.getByRole("button", { name: "Archive", exact: true }).waitFor();
    expect((await runsOf("agent_id=helper"))[0].archived_at).toBeUndefined();
  });

  it("one whose details are not there says what that may mean (4.6)", async () => {
    await show("run_of_old");
    await opened.page.getByText("No details of this run").waitFor();
    expect(await opened.page.getByRole("alert").count()).toBe(0);
    expect(await turns().count()).toBe(0);
  });
});

describe.skipIf(findChromium() === undefined)("runs of others in the web console", () => {
  const browser = useChromium();

  it("hide their receipts from the owner, say so, and keep the owner signed in (4.6)", async () => {
    const [owner, member] = ["owner-token-0123456789abcdef0123456789", "member-token-0123456789abcdef012345678"];
    await using opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: { "agents/helper/agent.json": { name: "Helper" } },
      config: {
        agent: {
          tokens: [
            { token: owner, userId: "owner", role: "owner" },
            { token: member, userId: "mia", role: "member" },
          ],
        },
      },
    });
    await using client = connectAgent({ baseURL: opened.service.url("agent"), token: member });
    await client.submit({ agentId: "helper", prompt: "Between us" }).ended;
    await opened.signIn(owner);
    await opened.goTo("Runs");
    await opened.page.getByRole("link", { name: "Between us" }).click();
    await opened.page.getByText("This run belongs to mia").waitFor();
    expect(await opened.page.getByRole("article").count()).toBe(0);
  });
});
