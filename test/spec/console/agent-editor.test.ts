import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

const helper = `{
  "name": "Helper",
  "instructions": "Be brief.",
  "tools": ["SendUserMessage"], "schedules": []
}
`;

describe.skipIf(findChromium() === undefined)("the editor of agents in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  let folder: string;
  beforeAll(async () => {
    opened = await openConsole({ browser: browser(), isSignedIn: false, files: { "agents/helper/agent.json": helper } });
    folder = join(opened.service.cwd, "agents");
    opened.page.on("dialog", (asked) => void asked.accept());
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    mkdirSync(join(folder, "helper"), { recursive: true });
    writeFileSync(join(folder, "helper/agent.json"), helper);
    for (const id of ["fresh", "gone"]) rmSync(join(folder, id), { recursive: true, force: true });
    // A page without the edits of the test before.
    await opened.page.setViewportSize(DESKTOP);
    await opened.page.reload();
    await opened.signIn();
    await opened.page.getByRole("button", { name: "Sign out" }).waitFor();
  });

  const stored = (id = "helper") => readFileSync(join(folder, id, "agent.json"), "utf8");
  const editor = (id = "helper") => opened.page.getByRole("textbox", { name: `agent.json of ${id}`, exact: true });
  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  const field = (name: string) => opened.page.getByLabel(name, { exact: true });
  const dialog = () => opened.page.getByRole("dialog");
  const problems = () => opened.page.getByRole("status", { name: "Problems of the text" });
  const go = (hash: string) => opened.page.evaluate((to) => void (location.hash = to), hash);
  const heading = (name: string) => opened.page.getByRole("heading", { level: 1, name, exact: true });
  async function open(id = "helper", view: "Form" | "Text" = "Form") {
    await go(`#/agents/${id}/edit`);
    await opened.page.getByRole("tab", { name: view }).click();
    await (view === "Form" ? field("Name") : editor(id)).waitFor();
  }
  async function write(text: string, id = "helper") {
    await editor(id).focus();
    await opened.page.keyboard.press("ControlOrMeta+a");
    await opened.page.keyboard.insertText(text);
  }
  async function save() {
    await button("Save").click();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await dialog().waitFor({ state: "detached" });
  }

  it("is led to from the agent, and changes single values of the text by a form that leaves the rest as it is", async () => {
    const { page } = opened;
    await go("#/agents/helper");
    await page.getByRole("link", { name: "Edit", exact: true }).click();
    await heading("Edit Helper").waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe("page-title");
    await field("Name").waitFor();
    expect(await button("Save").isDisabled()).toBe(true);
    await field("Instructions (optional)").fill("Be kind.\nBe brief.");
    await page
      .getByRole("group", { name: "Tools", exact: true })
      .getByRole("checkbox", { name: /^DelegateToAgent/ })
      .check();
    await button("More settings").click();
    await field("Temperature (optional)").fill("0.5");
    await field("Effort (optional)").selectOption({ label: "low" });
    await page.keyboard.press("ControlOrMeta+s");
    const changes = dialog().getByRole("region", { name: "Changes", exact: true });
    expect(await changes.locator("[data-kind=removed] code").allTextContents()).toEqual([
      'Removed:   "instructions": "Be brief.",',
      'Removed:   "tools": ["SendUserMessage"], "schedules": []',
    ]);
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    expect(stored()).toBe(
      helper
        .replace("Be brief.", "Be kind.\\nBe brief.")
        .replace('"SendUserMessage"]', '"SendUserMessage", "DelegateToAgent"]')
        .replace('"schedules": []', '"schedules": [], "temperature": 0.5, "effort": "low"'),
    );
    await field("Temperature (optional)").fill("");
    await save();
    expect(stored()).not.toContain("temperature");
  });

  it("offers what the service knows, and keeps and marks what it does not know", async () => {
    const { page } = opened;
    const odd = {
      name: "Odd",
      provider: "gone",
      model: "lost",
      engine: "missing",
      tools: ["Lost", "SendUserMessage"],
      skills: ["skills/old"],
    };
    mkdirSync(join(folder, "helper/skills/bills"), { recursive: true });
    writeFileSync(join(folder, "helper/skills/bills/SKILL.md"), "Read them.");
    await go("#/agents");
    await heading("Agents").waitFor();
    writeFileSync(join(folder, "helper/agent.json"), JSON.stringify(odd));
    await open();
    const [tools, skills] = ["Tools", "Skills"].map((name) => page.getByRole("group", { name, exact: true }));
    await page.getByText("This instance has no provider of this name").waitFor();
    await tools!.getByText("not available").waitFor();
    await skills!.getByText("not available").waitFor();
    await button("More settings").click();
    await page.getByText("This instance has no engine of this name").waitFor();
    await field("Provider (optional)").selectOption({ label: "demo" });
    await page.getByText("The provider demo does not list this model").waitFor();
    expect(await field("Model (optional)").locator("option").allTextContents()).toEqual(["Not given", "demo", "lost"]);
    await field("Model (optional)").selectOption({ label: "demo" });
    await expect.poll(() => page.getByText("does not list this model").count()).toBe(0);
    await field("Engine (optional)").selectOption({ label: "loop" });
    await skills!.getByRole("checkbox", { name: "skills/bills" }).check();
    await tools!.getByRole("checkbox", { name: /^DelegateToAgent/ }).check();
    await save();
    expect(JSON.parse(stored())).toEqual({
      ...{ ...odd, provider: "demo", model: "demo", engine: "loop" },
      ...{ tools: ["Lost", "SendUserMessage", "DelegateToAgent"], skills: ["skills/old", "skills/bills"] },
    });
    await tools!.getByRole("checkbox", { name: /^Lost/ }).click();
    await save();
    expect(JSON.parse(stored())).toMatchObject({ tools: ["SendUserMessage", "DelegateToAgent"] });
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("switches the memory on and off, leaves its options to the text, and takes resources and prompts one in each line", async () => {
    await open();
    await button("More settings").click();
    await field("Memory (optional)").selectOption({ label: "Yes" });
    await field("Resources (optional)").fill("shop/shop://menu\nshop/shop://orders/{id}");
    await field("Prompts (optional)").fill("shop/*");
    await save();
    expect(JSON.parse(stored())).toMatchObject({
      ...{ memory: true, resources: ["shop/shop://menu", "shop/shop://orders/{id}"], prompts: ["shop/*"] },
    });
    writeFileSync(join(folder, "helper/agent.json"), helper.replace("{", '{ "memory": { "maxDocuments": 3 },'));
    await opened.page.reload();
    await opened.signIn();
    await open();
    await opened.page.getByText("In the text alone: memory.").waitFor();
    await button("More settings").click();
    expect(await field("Memory (optional)").count()).toBe(0);
  });

  it("has sections for limits, context, approvals and schedules, which keep what they do not show", async () => {
    const { page } = opened;
    const written = `{
  "name": "Helper", "tools": ["SendUserMessage"],
  "limits": { "tokensPerDay": 5e3 },
  "schedules": [{ "name": "daily", "cron": "0 9 * * *", "prompt": "Look." }],
  "later": [1], "ui": { "color": "red" }
}
`;
    await go("#/agents");
    await heading("Agents").waitFor();
    writeFileSync(join(folder, "helper/agent.json"), written);
    await open();
    await page.getByText("In the text alone: later, ui.").waitFor();
    await button("Limits (set)").click();
    expect(await field("Tokens per day (optional)").inputValue()).toBe("5000");
    await field("Turns at once (optional)").fill("2");
    await button("Context").click();
    await field("Summarize (optional)").selectOption({ label: "Yes" });
    await button("Approvals").click();
    const approvals = page.locator(".disclosure").filter({ hasText: "Approvals" });
    await approvals.getByLabel("SendUserMessage (optional)").first().selectOption({ label: "ask" });
    await approvals
      .getByRole("group", { name: "Risk levels" })
      .first()
      .getByLabel("High (optional)")
      .selectOption({ label: "deny" });
    await button("Schedules (1)").click();
    const daily = page.getByRole("group", { name: "Schedule daily" });
    await daily.getByLabel("Model calls of a turn (optional)").fill("500");
    await daily.getByRole("alert").getByText("Expected at most 100").waitFor();
    await daily.getByLabel("Model calls of a turn (optional)").fill("");
    await daily.getByLabel("Cron (optional)").fill("0 8 * * *");
    await button("Add a schedule").click();
    const added = page.getByRole("group", { name: "Schedule schedule-2" });
    await added.getByLabel("Every (milliseconds) (optional)").fill("60000");
    await added.getByLabel("Prompt").fill("Wake up.");
    expect(await findingsInEveryLook(page)).toEqual([]);
    await save();
    const told = JSON.parse(stored());
    expect(told).toEqual({
      ...{ name: "Helper", tools: ["SendUserMessage"], later: [1], ui: { color: "red" } },
      limits: { tokensPerDay: 5000, turnsAtOnce: 2 },
      schedules: [
        { name: "daily", cron: "0 8 * * *", prompt: "Look." },
        { name: "schedule-2", prompt: "Wake up.", everyMs: 60_000 },
      ],
      context: { summarize: true },
      toolPolicy: { tools: { SendUserMessage: "ask" }, riskLevels: { high: "deny" } },
    });
    expect(stored()).toContain('"limits": { "tokensPerDay": 5e3, "turnsAtOnce": 2 }');
    // What is removed leaves nothing behind, and a change of the text is in the form.
    await field("Summarize (optional)").selectOption({ label: "Not given" });
    await page.getByRole("button", { name: "Remove schedule-2" }).click();
    await daily.getByRole("button", { name: "Remove daily" }).click();
    await page.getByRole("tab", { name: "Text" }).click();
    await expect.poll(() => editor().textContent()).not.toContain("schedules");
    expect(await editor().textContent()).not.toContain("context");
    await write(written.replace("5e3", "70"));
    await page.getByRole("tab", { name: "Form" }).click();
    await button("Limits (set)").click();
    expect(await field("Tokens per day (optional)").inputValue()).toBe("70");
  });

  it("tells at its field what is wrong, and goes to the first error of the text instead of saving it", async () => {
    const { page } = opened;
    await open();
    await button("More settings").click();
    await field("Temperature (optional)").fill("warm");
    await page.getByText("This must be a number").waitFor();
    await field("Temperature (optional)").fill("4");
    await page.getByRole("alert").getByText("Expected at most 2").waitFor();
    await expect.poll(() => problems().textContent()).toBe("1 error");
    await button("Save").click();
    await page.getByText("Correct the errors first").waitFor();
    expect(await dialog().count()).toBe(0);
    await expect.poll(() => editor().evaluate((each) => each.matches(":focus"))).toBe(true);
    expect(stored()).toBe(helper);
    await write("{");
    await page.getByRole("tab", { name: "Form" }).click();
    await page.getByText("The text is not a JSON object").waitFor();
  });

  it("checks the text while it is written, and offers its keys", async () => {
    const { page } = opened;
    await open("helper", "Text");
    await write(helper.replace("instructions", "instrutions"));
    await expect.poll(() => problems().textContent()).toBe("1 warning");
    await page.getByRole("list", { name: "Problems" }).getByText('did you mean "instructions"?').waitFor();
    await write("{\n  ");
    await page.keyboard.type('"descr');
    await page.getByRole("option", { name: "description" }).waitFor();
  });

  it("keeps the text and shows both where the file was changed meanwhile", async () => {
    const { page } = opened;
    await open();
    await field("Instructions (optional)").fill("Mine");
    writeFileSync(join(folder, "helper/agent.json"), helper.replace("Helper", "Theirs"));
    await button("Save").click();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("dialog", { name: "The agent was changed meanwhile" }).waitFor();
    const theirs = dialog().getByRole("region", { name: "Changes made meanwhile" });
    expect(await theirs.locator("[data-kind=added] code").allTextContents()).toEqual(['Added:   "name": "Theirs",']);
    expect(stored()).toContain("Theirs");
    await button("Keep editing").click();
    expect(await field("Instructions (optional)").inputValue()).toBe("Mine");
    await save();
    expect(stored()).toBe(helper.replace("Be brief.", "Mine"));
    // The other choice: the form shows the stored text.
    await field("Instructions (optional)").fill("Mine again");
    writeFileSync(join(folder, "helper/agent.json"), helper.replace("Be brief.", "Theirs"));
    await button("Save").click();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await button("Use the stored text").click();
    await expect.poll(() => field("Instructions (optional)").inputValue()).toBe("Theirs");
    expect(await button("Save").isDisabled()).toBe(true);
  });

  it("asks before unsaved edits are lost", async () => {
    const { page } = opened;
    await open();
    await field("Name").fill("Renamed");
    await page.getByRole("link", { name: "Helper", exact: true }).click();
    await page.getByRole("alertdialog", { name: "Leave without saving?" }).waitFor();
    await button("Stay").click();
    expect(await field("Name").inputValue()).toBe("Renamed");
    await save();
    await heading("Edit Renamed").waitFor();
    await page.getByRole("link", { name: "Renamed", exact: true }).click();
    await heading("Renamed").waitFor();
  });

  it("talks to the saved agent beside the editor", async () => {
    const { page } = opened;
    await open();
    const messages = page.getByRole("region", { name: "Messages" });
    await page.getByText("Turns use the agent as it is saved.").waitFor();
    await page.getByLabel("Message to Helper").fill("Hello there");
    await page.keyboard.press("Enter");
    await messages.getByText("Hello there", { exact: true }).waitFor();
    await expect.poll(() => button("Stop").count()).toBe(0);
    await page.getByRole("link", { name: "Run", exact: true }).waitFor();
    await heading("Edit Helper").waitFor();
    await field("Instructions (optional)").fill("Shout.");
    await page.getByText("Save your edits to try them out.").waitFor();
    await button("New conversation").click();
    await messages.getByText("Say something to Helper").waitFor();
  });

  it("creates an agent, which can be tried out then", async () => {
    const { page } = opened;
    await go("#/agents");
    await button("New agent").click();
    await field("ID").fill("a b");
    await page.keyboard.press("Enter");
    await dialog().getByText("Use 1 to 64 letters").waitFor();
    await field("ID").fill("helper");
    await page.keyboard.press("Enter");
    await dialog().getByText("There is an agent with this ID already.").waitFor();
    await field("ID").fill("fresh");
    await page.keyboard.press("Enter");
    await heading("New agent fresh").waitFor();
    await page.getByText("After you create it, you can talk to it here.").waitFor();
    await field("Name").fill("Fresh");
    await button("Create").click();
    await dialog().getByText("fresh/agent.json").waitFor();
    await dialog().getByRole("button", { name: "Create", exact: true }).click();
    await heading("Edit Fresh").waitFor();
    expect(JSON.parse(stored("fresh"))).toMatchObject({ name: "Fresh" });
    await page.getByLabel("Message to Fresh").waitFor();
  });

  it("deletes an agent after a confirmation, unless it was changed meanwhile", async () => {
    const { page } = opened;
    mkdirSync(join(folder, "gone"));
    writeFileSync(join(folder, "gone/agent.json"), '{ "name": "Gone" }');
    await open("gone");
    writeFileSync(join(folder, "gone/agent.json"), '{ "name": "Changed" }');
    await button("Delete").click();
    const asked = page.getByRole("alertdialog");
    await asked.getByRole("button", { name: "Delete", exact: true }).click();
    await asked.getByText("The agent was changed meanwhile").waitFor();
    expect(stored("gone")).toContain("Changed");
    await asked.getByRole("button", { name: "Delete", exact: true }).click();
    await heading("Agents").waitFor();
    await page.getByText("Removed gone").waitFor();
    expect(existsSync(join(folder, "gone"))).toBe(false);
    await expect.poll(() => page.getByRole("table", { name: "Agents" }).getByText("Changed").count()).toBe(0);
  });

  it("shows form, text and conversation as tabs on a phone, and keeps the history of the text", async () => {
    const { page } = opened;
    await page.setViewportSize(PHONE);
    await open("helper", "Text");
    await write(helper.replace("Be brief.", "Mine"));
    await page.getByRole("tab", { name: "Try out" }).click();
    await page.getByLabel("Message to Helper").waitFor();
    await page.getByRole("tab", { name: "Form" }).click();
    await expect.poll(() => field("Instructions (optional)").inputValue()).toBe("Mine");
    await page.getByRole("tab", { name: "Text" }).click();
    await editor().focus();
    await page.keyboard.press("ControlOrMeta+z");
    await expect.poll(() => editor().textContent()).toContain("Be brief.");
  });

  it("has no findings of axe, in light, in dark and on a phone", async () => {
    await open();
    await button("More settings").click();
    await field("Temperature (optional)").fill("4");
    await expect.poll(() => problems().textContent()).toBe("1 error");
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
    await opened.page.getByRole("tab", { name: "Text" }).click();
    await editor().waitFor();
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
  });
});

describe.skipIf(findChromium() === undefined)("the list of agents in the web console", () => {
  const browser = useChromium();

  it("offers the owner to create the first agent", async () => {
    await using opened = await openConsole({ browser: browser() });
    const { page } = opened;
    await opened.goTo("Agents");
    await page.getByRole("button", { name: "Create an agent" }).click();
    await page.getByLabel("ID", { exact: true }).fill("first");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "New agent first" }).waitFor();
  });

  it("offers members neither to create nor to edit agents", async () => {
    await using opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: { "agents/helper/agent.json": helper },
      config: { agent: { tokens: [{ token: "member-token-0123456789", userId: "bob", role: "member" }] } },
    });
    const { page } = opened;
    await opened.signIn("member-token-0123456789");
    await opened.goTo("Agents");
    await page.getByRole("link", { name: "Helper" }).click();
    await page.getByRole("heading", { level: 1, name: "Helper" }).waitFor();
    expect(await page.getByRole("link", { name: "Edit", exact: true }).count()).toBe(0);
    await page.evaluate(() => void (location.hash = "#/agents/helper/edit"));
    await page.getByText("Only the owner may see and change the texts of agents").waitFor();
    await opened.goTo("Agents");
    expect(await page.getByRole("button", { name: "New agent" }).count()).toBe(0);
  });
});

describe.skipIf(findChromium() === undefined)("the agents in the web console of an instance with `agent.editable: false`", () => {
  const browser = useChromium();

  it("are shown without buttons to create and edit them", async () => {
    await using opened = await openConsole({
      browser: browser(),
      files: { "agents/helper/agent.json": helper },
      config: { agent: { editable: false } },
    });
    const { page } = opened;
    await page.evaluate(() => void (location.hash = "#/agents"));
    await page.getByRole("link", { name: "Helper" }).first().waitFor();
    expect(await page.getByRole("button", { name: "New agent" }).count()).toBe(0);
    await page.evaluate(() => void (location.hash = "#/agents/helper"));
    await page.getByRole("heading", { level: 1, name: "Helper" }).waitFor();
    expect(await page.getByRole("link", { name: "Edit", exact: true }).count()).toBe(0);
  });
});
