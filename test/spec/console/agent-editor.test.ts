import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../harness/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../harness/console.ts";

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
    await page.getByText("In the text alone: schedules.").waitFor();
    await field("Instructions (optional)").fill("Be kind.\nBe brief.");
    await field("Tools (optional)").fill("SendUserMessage\n ReadAttachment\n");
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
        .replace('"SendUserMessage"]', '"SendUserMessage", "ReadAttachment"]')
        .replace('"schedules": []', '"schedules": [], "temperature": 0.5, "effort": "low"'),
    );
    await field("Temperature (optional)").fill("");
    await save();
    expect(stored()).not.toContain("temperature");
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
