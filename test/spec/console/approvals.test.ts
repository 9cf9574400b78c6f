import { type AgentClient, connectAgent, type Query } from "@portico/client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

const [OWNER, MEMBER] = ["owner-token-0123456789abcdef0123456789", "member-token-0123456789abcdef012345678"];
const TASK = { agentId: "worker", prompt: "Count sheep" };

describe.skipIf(findChromium() === undefined)("approvals in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  let client: AgentClient;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: {
        "agents/boss/agent.json": {
          name: "Boss",
          tools: ["DelegateToAgent"],
          toolPolicy: { tools: { DelegateToAgent: "ask" } },
        },
        "agents/worker/agent.json": { name: "Worker" },
      },
      config: {
        agent: {
          tokens: [
            { token: OWNER, userId: "owner", role: "owner" },
            { token: MEMBER, userId: "mia", role: "member" },
          ],
        },
      },
    });
    client = connectAgent({ baseURL: opened.service.url("agent"), token: MEMBER });
    await opened.signIn(OWNER);
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });
  afterAll(async () => {
    client?.close();
    await opened?.[Symbol.asyncDispose]();
  });

  const queries: Query[] = [];
  afterEach(async () => {
    for (const query of queries.splice(0)) query.abort();
    await expect.poll(async () => (await client.calls.approvals({ query: {} })).approvals).toEqual([]);
    await expect.poll(() => cards().count()).toBe(0);
    await expect.poll(() => lines().count()).toBe(0);
  });

  /** On the page of approvals: one line each. */
  const lines = () => opened.page.getByRole("list", { name: "Decisions of boss" }).getByRole("listitem");
  /** Opens the line of a call. */
  const openLine = (at = 0) => lines().nth(at).getByRole("button", { name: "DelegateToAgent" }).click();
  const cards = () => opened.page.getByRole("list", { name: "Waiting calls" }).getByRole("listitem");
  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  /** A query of mia whose call waits. */
  const asked = async (prompt = "DelegateToAgent") => {
    const query = client.submit({ agentId: "boss", prompt });
    queries.push(query);
    for await (const { type } of query) if (type === "approval") return query;
    throw new Error("No call waits");
  };
  const resultOf = async (query: Query) => {
    for await (const { type, content } of query)
      if (type === "tool_result") return (content as { result: { content: { text: string }[] } }).result.content[0]!.text;
    return undefined;
  };
  const show = async (place: string, title: string) => {
    await opened.page.evaluate((hash) => (location.hash = hash), `#/${place}`);
    await opened.page.getByRole("heading", { level: 1, name: title }).waitFor();
  };

  it("are counted in the navigation and listed with their tool, risk, arguments, user and expiry, on a phone too", async () => {
    const { page } = opened;
    await opened.goTo("Approvals");
    await page.getByText("No decision waits").waitFor();
    const query = await asked();
    await page.getByRole("navigation").getByRole("link", { name: "Approvals (1 waiting)" }).waitFor();
    const line = (await lines().first().textContent())!;
    for (const part of [/DelegateToAgent/, /(?:low|medium|high|critical) risk/, /for mia/, /asked/, /expires/])
      expect(line).toMatch(part);
    await openLine();
    const shown = await page.getByRole("group", { name: "arguments of DelegateToAgent" }).textContent();
    expect(JSON.parse(shown!)).toMatchObject({ prompt: "DelegateToAgent" });
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.setViewportSize(PHONE);
    await button("Menu (approvals waiting: 1)").waitFor();
    await page.getByLabel("Comment").fill("Not today");
    await button("Reject DelegateToAgent").click();
    expect(await resultOf(query)).toBe("A person rejected this call: Not today");
    await page.getByText("No decision waits").waitFor();
    await button("Menu").waitFor();
    await page.setViewportSize(DESKTOP);
  });

  it("show hidden characters of arguments as escapes, also where they are edited", async () => {
    const { page } = opened;
    const query = await asked("DelegateToAgent \u202egro.live\u202c");
    await openLine();
    const shown = await page.getByRole("group", { name: "arguments of DelegateToAgent" }).textContent();
    await button("Edit arguments").click();
    for (const text of [shown!, await page.getByLabel("Your arguments").inputValue()]) {
      expect(text).toContain("\\u202egro.live\\u202c");
      expect(text).not.toMatch(/[\u202e\u202c]/);
    }
    await button("Use the model’s arguments").click();
    await button("Reject DelegateToAgent").click();
    await query.ended;
    await page.getByText("No decision waits").waitFor();
  });

  it("are approved with edited arguments, which must fit the tool", async () => {
    const { page } = opened;
    const query = await asked();
    await openLine();
    await button("Edit arguments").click();
    for (const [typed, problem] of [
      ["{", "This is not valid JSON"],
      ["[]", "Enter a JSON object"],
      ['{ "agentId": 1 }', "do not fit the tool"],
    ] as const) {
      await page.getByLabel("Your arguments").fill(typed);
      await button("Approve DelegateToAgent").click();
      await page.getByRole("alert").filter({ hasText: problem }).waitFor();
    }
    await page.getByLabel("Your arguments").fill(JSON.stringify(TASK));
    await button("Approve DelegateToAgent").click();
    expect(await resultOf(query)).toContain("Count sheep");
    await page.getByText("No decision waits").waitFor();
  });

  it("keep what a person types while the list is updated, and go when another person decides", async () => {
    const { page } = opened;
    const query = await asked();
    const { runId = "" } = (await query.started)!;
    await openLine();
    await page.getByLabel("Comment").fill("Let me think");
    const other = await asked();
    await expect.poll(() => lines().count()).toBe(2);
    expect(await page.getByLabel("Comment").first().inputValue()).toBe("Let me think");
    const [call] = (await client.calls.approvals({ query: {} })).approvals.filter((each) => each.runId === runId);
    await client.decideApproval(call!, { decision: "reject" });
    await expect.poll(() => lines().count()).toBe(1);
    other.abort();
    await page.getByText("No decision waits").waitFor();
  });

  it("allow a tool for good; the consent is listed and revoked", async () => {
    const { page } = opened;
    const query = await asked();
    await openLine();
    await page.getByRole("checkbox", { name: "Always allow this tool for this agent" }).check();
    await button("Approve DelegateToAgent").click();
    await query.ended;
    const row = () => page.getByRole("table", { name: "Always allowed" }).getByRole("row").nth(1);
    expect(await row().textContent()).toMatch(/DelegateToAgent.*boss.*mia/);
    expect((await client.submit({ agentId: "boss", prompt: "DelegateToAgent" }).ended).status).toBe("completed");
    expect(await findingsInEveryLook(page)).toEqual([]);
    await row().getByRole("button").click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Revoke" }).click();
    await page.getByText("No standing consents").waitFor();
    (await asked()).abort();
    await page.getByText("No decision waits").waitFor();
  });

  it("are on the page of their run, which says that it waits", async () => {
    const { page } = opened;
    const query = await asked();
    const { runId = "" } = (await query.started)!;
    await show("runs", "Runs");
    await page.getByRole("table", { name: "Runs" }).getByText("for approval", { exact: true }).first().waitFor();
    await show(`runs/${runId}`, "DelegateToAgent");
    await page.getByRole("link", { name: "Open", exact: true }).last().click();
    await page.getByText("This conversation belongs to mia").waitFor();
    await cards().first().waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    await show(`runs/${runId}`, "DelegateToAgent");
    await page.getByText("a call of a tool waits for a person").waitFor();
    await button("Approve DelegateToAgent").click();
    await page.getByText("ready for another turn").waitFor();
    await expect.poll(() => cards().count()).toBe(0);
    expect((await query.ended).status).toBe("completed");
  });

  it("are in the conversation, where a member decides its own calls", async () => {
    const { page } = opened;
    await button("Sign out").click();
    await opened.signIn(MEMBER);
    await page.getByRole("navigation").waitFor();
    await show("agents/boss", "Boss");
    await page.getByRole("textbox", { name: "Message to Boss" }).fill("DelegateToAgent");
    await page.keyboard.press("Enter");
    await page.getByText("Waits for approval").waitFor();
    await button("Approve DelegateToAgent").click();
    await page.getByText("The tool answered: There is no such agent", { exact: true }).waitFor();
    await expect.poll(() => cards().count()).toBe(0);
    expect(await page.getByText("Waits for approval").count()).toBe(0);
  });
});
