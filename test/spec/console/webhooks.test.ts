import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";

const run = promisify(execFile);
const byHand = { promptTemplate: "Nightly check of {{host}}", toolIds: [], maxTurns: 2 };

describe.skipIf(findChromium() === undefined)("webhooks in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      files: {
        "agents/helper/agent.json": { name: "Helper" },
        "agents/nightly/agent.json": { name: "Nightly", webhooks: { enabled: true, events: { check: byHand } } },
        "agents/broken/agent.json": { name: "Broken", webhooks: { enabled: "perhaps" } },
      },
      context: { permissions: ["clipboard-read", "clipboard-write"] },
    });
    await opened.goTo("Webhooks");
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const copied = () => opened.page.evaluate(() => navigator.clipboard.readText());
  const events = () => opened.page.getByRole("table", { name: "Events", exact: true });
  const toggle = () => opened.page.getByRole("switch", { name: "Accept triggers" });
  const badge = (text: string) => opened.page.getByRole("status").getByText(text, { exact: true });
  const configuration = () => opened.call("GET", "/api/agents/helper/webhooks");
  const agentFile = (id: string) => join(opened.service.cwd, "agents", id, "agent.json");
  /** Its own address, by the link to all agents. */
  async function choose(name: string) {
    await opened.goTo("Webhooks");
    await opened.page.getByRole("table", { name: "Agents" }).getByRole("link", { name, exact: true }).click();
    await opened.page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  }
  async function trigger(secret: string): Promise<number> {
    const answer = await fetch(`${opened.service.url("agent")}/api/webhook/helper`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: '{"event":"deploy"}',
    });
    return answer.status;
  }
  /** Copies the secret that is shown, and closes the dialog. */
  async function takeSecret(): Promise<string> {
    const { page } = opened;
    await page.getByRole("dialog").getByRole("button", { name: "Copy secret" }).click();
    const secret = await copied();
    await page.getByRole("button", { name: "Done" }).click();
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    return secret;
  }
  let secret = "";

  it("lists the agents with what their endpoints are", async () => {
    const row = (name: string) => opened.page.getByRole("row").filter({ hasText: name });
    await row("Nightly").getByText("Enabled").waitFor();
    await row("Nightly").getByText("check").waitFor();
    await row("Helper").getByText("not set up").waitFor();
    await row("Broken").getByText("agent.json is invalid").waitFor();
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
  });

  it("explains how to correct a broken configuration, and reads it again afterwards", async () => {
    const { page } = opened;
    await choose("Broken");
    await page.getByRole("alert").getByText("Correct the file by hand").waitFor();
    writeFileSync(agentFile("broken"), JSON.stringify({ name: "Broken" }));
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("No event yet").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });

  it("an endpoint without events is not enabled, and the page says why (4.3)", async () => {
    const { page } = opened;
    await choose("Helper");
    await toggle().click();
    await page.getByRole("alert").getByText("at least one event and a secret").waitFor();
    expect(await toggle().getAttribute("aria-checked")).toBe("false");
  });

  it.each(["-deploy", "de ploy", "__proto__", "déploy"])("refuses the name %s before the service does", async (name) => {
    const { page } = opened;
    if ((await page.getByLabel("Name").count()) === 0) await page.getByRole("link", { name: "New event" }).click();
    await page.getByLabel("Prompt template").fill("Hello");
    await page.getByLabel("Name").fill(name);
    await page.getByRole("alert").getByText("1 to 128 ASCII letters").waitFor();
    await page.getByRole("button", { name: "Create event" }).click();
    expect((await configuration()).events).toEqual([]);
  });

  it("shows a rendered template by the rules of the service (4.4)", async () => {
    const { page } = opened;
    await page.getByLabel("Prompt template").fill("{{version}} by {{actor}}: {{tags}}{{a.b}}. Use SendUserMessage.");
    const payload = { version: 2, tags: ["x", 1], a: { b: "no path" }, actor: null };
    await page.getByLabel("Sample payload").fill(JSON.stringify(payload));
    const prompt = page.getByRole("region", { name: "Prompt for the agent" });
    await expect.poll(() => prompt.textContent()).toContain('2 by {{actor}}: ["x",1]{{a.b}}. Use SendUserMessage.');
    expect(await page.getByText("stays unchanged").textContent()).toContain("{{actor}}, {{a.b}}");
    await page.getByLabel("Sample payload").fill("[1]");
    await page.getByRole("alert").getByText("A payload must be an object").waitFor();
  });

  it("shows the risk of each tool, and which tools need a confirmation", async () => {
    const { page } = opened;
    const tools = page.getByRole("group", { name: "Tools" });
    const { availableTools } = await configuration();
    expect(availableTools.length).toBeGreaterThan(1);
    for (const { name, riskLevel, requiresConfirmation } of availableTools) {
      const item = tools.getByRole("listitem").filter({ hasText: name });
      expect(await item.textContent()).toContain(`${riskLevel} risk`);
      expect(await item.getByText("Requires confirmation").count()).toBe(requiresConfirmation ? 1 : 0);
    }
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("the first save enables the endpoint and shows the secret once (4.3)", async () => {
    const { page } = opened;
    await page.getByLabel("Name").fill("deploy");
    await page.getByRole("checkbox", { name: "SendUserMessage" }).check();
    await page.getByLabel("Maximum model calls of a run").fill("7");
    await page.getByRole("button", { name: "Create event" }).click();
    secret = await takeSecret();
    expect(secret).toMatch(/^whs_/);
    expect(await page.content()).not.toContain(secret);
    await badge("Enabled").waitFor();
    expect((await configuration()).events).toEqual([
      {
        event: "deploy",
        promptTemplate: "{{version}} by {{actor}}: {{tags}}{{a.b}}. Use SendUserMessage.",
        toolIds: ["SendUserMessage"],
        maxTurns: 7,
      },
    ]);
  });

  it("an event is edited, and a second save shows no secret", async () => {
    const { page } = opened;
    await events().getByRole("link", { name: "deploy" }).click();
    await page.getByLabel("Prompt template").fill("Version {{version}} is out. Use SendUserMessage.");
    await page.getByRole("button", { name: "Save" }).click();
    await events().getByText("is out").waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    const [{ promptTemplate, toolIds, maxTurns }] = (await configuration()).events;
    expect([promptTemplate, toolIds, maxTurns]).toEqual([
      "Version {{version}} is out. Use SendUserMessage.",
      ["SendUserMessage"],
      7,
    ]);
  });

  it("a save that conflicts with another change keeps the typed text, and reads again", async () => {
    const { page } = opened;
    await page.getByRole("link", { name: "New event" }).click();
    await page.getByLabel("Name").fill("second");
    await page.getByLabel("Prompt template").fill("Typed with care");
    // Two writes within the milliseconds of one save: the answer alone is put in the way.
    const path = "**/webhooks/events/second";
    await page.route(path, (route) => route.fulfill({ status: 409, json: { error: "webhook_configuration_changed" } }));
    await page.getByRole("button", { name: "Create event" }).click();
    await page.getByRole("alert").getByText("nothing was written").waitFor();
    await page.unroute(path);
    await page.getByRole("button", { name: "Try again" }).click();
    await expect.poll(() => page.getByRole("alert").count()).toBe(0);
    await page.getByRole("button", { name: "Create event" }).click();
    await events().getByRole("link", { name: "second" }).waitFor();
    expect((await configuration()).events[1].promptTemplate).toBe("Typed with care");
  });

  it("a test trigger is a real one: it is delivered, and its curl command is the very same", async () => {
    const { page } = opened;
    await page.getByLabel("Event", { exact: true }).selectOption("deploy");
    await page.getByLabel("Payload").fill(`{"version":"it's 1.2"}`);
    expect(await page.getByLabel("Webhook secret").inputValue()).toBe(secret);
    await page.getByRole("button", { name: "Send trigger" }).click();
    await page.getByRole("status").getByText("Accepted", { exact: true }).waitFor();
    const deliveries = page.getByRole("region", { name: "Deliveries" }).getByRole("listitem");
    await expect.poll(() => deliveries.count(), { timeout: 30_000 }).toBe(1);
    expect(await deliveries.first().textContent()).toContain("deploy");

    expect(await page.getByRole("group", { name: "curl command" }).textContent()).not.toContain(secret);
    await page.getByRole("button", { name: "Copy curl command" }).click();
    const { stdout } = await run("bash", ["-c", (await copied()).replace("curl ", "curl -sS ")]);
    expect(JSON.parse(stdout)).toEqual({ accepted: true, agentId: "helper", event: "deploy" });
    const told = async () => (await opened.call("GET", "/api/runs?agent_id=helper")).runs.map((each: any) => each.title);
    await expect.poll(told).toEqual(Array(2).fill("Version it's 1.2 is out. Use SendUserMessage."));
    await expect.poll(() => deliveries.count(), { timeout: 30_000 }).toBe(2);
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("a wrong secret is refused and ends no session", async () => {
    const { page } = opened;
    await page.getByLabel("Webhook secret").fill("whs_wrong");
    await page.getByRole("button", { name: "Send trigger" }).click();
    await page.getByRole("alert").getByText("Invalid webhook secret").waitFor();
    expect(await events().count()).toBe(1);
  });

  it("deliveries are paged, the newest first, and their page is in the address", async () => {
    const { page } = opened;
    for (let sent = 0; sent < 9; sent++) expect(await trigger(secret)).toBe(200);
    const total = async () => (await opened.call("GET", "/api/agents/helper/schedule-messages")).total;
    await expect.poll(total, { timeout: 30_000 }).toBe(11);
    const region = page.getByRole("region", { name: "Deliveries" });
    await region.getByText("1 to 10 of 11").waitFor({ timeout: 30_000 });
    await region.getByRole("link", { name: "Older" }).click();
    await region.getByText("11 to 11 of 11").waitFor();
    const { items } = await opened.call("GET", "/api/agents/helper/schedule-messages?offset=10");
    expect(await region.getByRole("link", { name: "Run" }).getAttribute("href")).toBe(`#/runs/${items[0].runId}`);
    expect(await page.evaluate(() => location.hash)).toBe("#/webhooks/helper?deliveries=10");
    await page.goBack();
    await region.getByText("1 to 10 of 11").waitFor();
    await page.goForward();
    await region.getByText("11 to 11 of 11").waitFor();
    await region.getByRole("link", { name: "Newer" }).click();
    await region.getByText("1 to 10 of 11").waitFor();
    expect(await page.evaluate(() => location.hash)).toBe("#/webhooks/helper");
  });

  it("pausing refuses triggers, and enabling takes them again", async () => {
    await toggle().click();
    await badge("Paused").waitFor();
    expect(await trigger(secret)).toBe(404);
    await toggle().click();
    await badge("Enabled").waitFor();
    expect(await trigger(secret)).toBe(200);
  });

  it("rotation asks first, shows the new secret once, and the old one is refused at once", async () => {
    const { page } = opened;
    await page.getByRole("button", { name: "Rotate" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Cancel" }).click();
    expect(await trigger(secret)).toBe(200);
    await page.getByRole("button", { name: "Rotate" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Rotate" }).click();
    const next = await takeSecret();
    expect([await trigger(secret), await trigger(next)]).toEqual([401, 200]);
    expect(await page.getByLabel("Webhook secret").inputValue()).toBe(next);
  });

  it("the secret is forgotten when the user leaves the agent, and is in no storage", async () => {
    const { page } = opened;
    expect(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).not.toContain("whs_");
    await choose("Helper");
    expect(await page.getByLabel("Webhook secret").inputValue()).toBe("");
  });

  it("an event is deleted when that was confirmed, and the last one pauses the endpoint", async () => {
    const { page } = opened;
    for (const name of ["second", "deploy"]) {
      await page.getByRole("button", { name: `Delete ${name}` }).click();
      await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
      await expect.poll(() => page.getByRole("button", { name: `Delete ${name}` }).count()).toBe(0);
    }
    await badge("Paused").waitFor();
    expect(JSON.parse(readFileSync(agentFile("helper"), "utf8")).webhooks.events).toEqual({});
  });

  it("an agent without a secret is triggered with the instance token, which is in no shown command", async () => {
    const { page } = opened;
    await choose("Nightly");
    expect(await page.getByLabel("Webhook secret").count()).toBe(0);
    await page.getByRole("button", { name: "Send trigger" }).click();
    await page.getByRole("status").getByText("Accepted", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Copy curl command" }).click();
    expect(await copied()).toContain("Bearer INSTANCE_TOKEN");
  });
});

describe.skipIf(findChromium() === undefined)("webhooks that are not managed here, in the web console", () => {
  const browser = useChromium();

  it("are explained, and asked for nowhere", async () => {
    await using opened = await openConsole({
      browser: browser(),
      config: { agent: { webhooks: { management: false } } },
    });
    await opened.goTo("Webhooks");
    await opened.page.getByText("Webhooks are not managed here").waitFor();
    expect(await opened.page.getByRole("alert").count()).toBe(0);
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
  });
});
