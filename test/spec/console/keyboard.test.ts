import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connectAgent, type Query } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { type OpenConsole, openConsole } from "../../browser/console.ts";

/** For both services, so that the console does not ask for a token. */
const TOKEN = "one-token-for-both-services-0123456789abcdef";
const ask = `
name: Ask a person
parameters: { type: object, properties: { word: { type: string } } }
nodes:
  each:
    type: map
    name: Each
    with:
      items: "[1, 2]"
      nodes: { double: { type: transform, with: { value: "\${{ item * 2 }}" } } }
      result: nodes.double.output
  ask: { type: human_gate, name: Go on?, needs: [each], with: { title: Shall it go on? } }
`;

/** What a walk with Tab through a page found. */
interface Walk {
  /** Elements that can be operated and that Tab did not reach. */
  readonly missed: readonly string[];
  /** Elements that were reached without a name, unseen, or without a mark of the focus. */
  readonly faults: readonly string[];
  readonly stops: number;
}

describe.skipIf(findChromium() === undefined)("the web console with the keyboard alone", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  let waiting: Query;
  let client: ReturnType<typeof connectAgent>;
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
        "agents/helper/agent.json": {
          name: "Helper",
          schedules: [{ name: "yearly", cron: "0 0 1 1 *", prompt: "Look around." }],
          webhooks: {
            enabled: true,
            events: { deploy: { promptTemplate: "Version {{version}}", toolIds: ["SendUserMessage"] } },
          },
        },
        "workflows/ask.yaml": ask,
        "workflows/broken.yaml": "nodes:\n  a: { type: transfrom }\n",
      },
      config: {
        workflow: { token: TOKEN, definitionsDir: "workflows", editable: true },
        agent: { tokens: [{ token: TOKEN, userId: "owner", role: "owner" }] },
      },
    });
    client = connectAgent({ baseURL: opened.service.url("agent"), token: TOKEN });
    await client.submit({ agentId: "helper", prompt: "Say hello" }).ended;
    waiting = client.submit({ agentId: "boss", prompt: "DelegateToAgent" });
    for await (const { type } of waiting) if (type === "approval") break;
    await fetch(`${opened.service.url("workflow")}/api/workflow/webhook?id=ask`, {
      method: "POST",
      headers: { "x-workflow-service-token": TOKEN, "content-type": "application/json" },
      body: "{}",
    });
  });
  afterAll(async () => {
    waiting?.abort();
    await client?.close();
    await opened?.[Symbol.asyncDispose]();
  });

  const press = (key: string) => opened.page.keyboard.press(key);
  const heading = (name: string) => opened.page.getByRole("heading", { level: 1, name, exact: true });
  const focused = () => opened.page.evaluate(nameOfFocus);
  /** Presses Tab until the element with this name has the focus. */
  async function tabTo(name: string) {
    const seen: string[] = [];
    for (let presses = 0; presses < MOST_STOPS; presses++) {
      await press("Tab");
      const at = await focused();
      if (at === name) return;
      seen.push(at);
    }
    throw new Error(`Tab does not reach "${name}", only: ${seen.join(" | ")}`);
  }
  async function follow(name: string, title: string) {
    await tabTo(name);
    await press("Enter");
    await heading(title).waitFor();
    await opened.page
      .getByRole("status")
      .filter({ hasText: /^\s*Loading / })
      .first()
      .waitFor({ state: "detached" });
  }
  /** Presses Tab until the focus is where it was before. The page reads no data meanwhile: elements that come or go are not reached. */
  async function walk(): Promise<Walk> {
    const { page } = opened;
    await page.evaluate(hidePage);
    await opened.untilRead();
    await page.evaluate(beginWalk);
    for (let presses = 0; presses < MOST_STOPS; presses++) {
      await press("Tab");
      if (await page.evaluate(noteStop)) break;
    }
    const walked = await page.evaluate(endWalk);
    await page.evaluate(showPage);
    return walked;
  }
  async function expectWhole() {
    const { missed, faults, stops } = await walk();
    expect({ missed, faults }).toEqual({ missed: [], faults: [] });
    expect(stops).toBeGreaterThan(10);
  }
  /** Of an open dialog, which keeps the focus. */
  async function expectWholeDialog(name: string) {
    await opened.page.getByRole("dialog", { name }).waitFor();
    await expect.poll(() => opened.page.evaluate(() => document.activeElement?.closest("[role=dialog]") !== null)).toBe(true);
    const { missed, faults, stops } = await walk();
    expect({ missed, faults }).toEqual({ missed: [], faults: [] });
    expect(stops).toBeGreaterThan(1);
  }
  async function closeDialog() {
    await press("Escape");
    await expect.poll(() => opened.page.getByRole("dialog").count()).toBe(0);
  }

  it("signs in", async () => {
    await tabTo("Instance token");
    await opened.page.keyboard.type(TOKEN);
    await press("Enter");
    await heading("Overview").waitFor();
  });

  const PAGES = ["Providers", "Playground", "Agents", "Webhooks", "Schedules", "Workflows", "Runs", "Measurements", "Overview"];
  it.each(PAGES)("reaches everything on the page %s, with a name and a visible focus", async (title) => {
    await follow(title, title);
    await expectWhole();
  });

  it("reaches everything on the page Log while it is paused, with a name and a visible focus", async () => {
    await follow("Log", "Log");
    // Lines that come meanwhile would be missed.
    await tabTo("Pause");
    await press("Enter");
    await opened.page.getByText("Paused", { exact: true }).waitFor();
    await expectWhole();
  });

  it("reaches everything on the page Approvals, where calls and gates wait", async () => {
    await opened.page.getByRole("link", { name: "Approvals (2 waiting)" }).waitFor();
    await follow("Approvals 2 (2 waiting)", "Approvals");
    await opened.page
      .getByRole("list", { name: /^Decisions of / })
      .first()
      .waitFor();
    await expectWhole();
  });

  it("writes to an agent, and goes on to the run of the conversation", async () => {
    await follow("Agents", "Agents");
    await follow("Helper", "Helper");
    await expect.poll(focused).toBe("Message to Helper");
    await opened.page.keyboard.type("Hello again");
    await press("Enter");
    await opened.page.getByRole("region", { name: "Messages" }).getByText("Hello again", { exact: true }).waitFor();
    await expect.poll(() => opened.page.getByRole("button", { name: "Stop" }).count()).toBe(0);
    await expectWhole();
    await tabTo("Run");
    await press("Enter");
    await heading("Hello again").waitFor();
    await opened.page.getByRole("tree", { name: "Parts of the turn" }).waitFor();
    await expectWhole();
  });

  it("edits an event of a webhook", async () => {
    await follow("Webhooks", "Webhooks");
    await follow("Helper", "Helper");
    await opened.page.getByRole("table", { name: "Events" }).waitFor();
    await expectWhole();
    await follow("deploy", "deploy");
    await expectWhole();
  });

  it("edits an agent", async () => {
    const { page } = opened;
    await follow("Agents", "Agents");
    await follow("Helper", "Helper");
    await follow("Edit", "Edit Helper");
    await page.getByLabel("Message to Helper").waitFor();
    await expectWhole();
    await tabTo("Description (optional)");
    await page.keyboard.type("Helps");
    await press("Control+s");
    await page.getByRole("dialog", { name: "Save the agent?" }).waitFor();
    await tabTo("Save");
    await press("Enter");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    await expectWhole();
  });

  it("opens a dialog, stays in it, and comes back to the button with Escape", async () => {
    await follow("Workflows", "Workflows");
    await follow("Ask a person", "Ask a person");
    await opened.page.getByRole("table", { name: "Runs" }).waitFor();
    await expectWhole();
    await tabTo("Start");
    await press("Enter");
    await opened.page.getByRole("dialog").waitFor();
    for (let presses = 0; presses < 12; presses++) {
      await press("Tab");
      expect(await opened.page.evaluate(() => document.activeElement?.closest("[role=dialog]") !== null)).toBe(true);
    }
    await press("Escape");
    await expect.poll(() => opened.page.getByRole("dialog").count()).toBe(0);
    await expect.poll(focused).toBe("Start");
  });

  it("edits the definition of a workflow, and comes back", async () => {
    const { page } = opened;
    await follow("Edit", "Edit ask");
    await page.getByRole("textbox", { name: "Definition of ask" }).waitFor();
    await page.getByRole("button", { name: "Zoom in" }).waitFor();
    await expectWhole();
    await tabTo("Definition of ask");
    await page.keyboard.type("# Asks\n");
    await press("Control+s");
    await page.getByRole("dialog", { name: "Save the definition?" }).waitFor();
    await tabTo("Save");
    await press("Enter");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    await expectWhole();
    await follow("ask", "Ask a person");
    await page.getByRole("table", { name: "Runs" }).waitFor();
  });

  it("decides a gate on the page of its run", async () => {
    const { page } = opened;
    const link = page.getByRole("table", { name: "Runs" }).getByRole("link");
    await tabTo((await link.textContent())!.trim());
    await press("Enter");
    await heading("Run of Ask a person").waitFor();
    await page.getByRole("treeitem", { name: "Go on?" }).waitFor();
    await page.getByRole("button", { name: "Zoom in" }).waitFor();
    await expectWhole();
    await tabTo("Approve");
    await press("Enter");
    await page.getByRole("status", { name: "Status of the run" }).getByText("Completed").waitFor();
  });

  it("opens a run of a workflow as a test, and compares it with another", async () => {
    await tabTo("Open as a test");
    await press("Enter");
    await expectWholeDialog("This run as a test");
    await closeDialog();
    await tabTo("Compare");
    await press("Enter");
    await expect.poll(focused).toBe("The other run");
    await expectWhole();
  });

  it("compares turns of agents", async () => {
    const { page } = opened;
    await follow("Runs", "Runs");
    await tabTo("Hello again");
    await press("Enter");
    await heading("Hello again").waitFor();
    await page.getByRole("tree", { name: "Parts of the turn" }).waitFor();
    await tabTo("Compare");
    await press("Enter");
    await expect.poll(focused).toBe("The other run");
    await expectWhole();
  });

  it("chooses columns of runs, and shows the runs of workflows", async () => {
    const { page } = opened;
    await follow("Runs", "Runs");
    await tabTo("Columns");
    await press("Enter");
    await page.getByRole("group", { name: "Columns" }).waitFor();
    await expectWhole();
    await tabTo("Of agents");
    await press("ArrowRight");
    await page.getByRole("table", { name: "Runs of workflows" }).waitFor();
    await expectWhole();
  });

  it("reads the tables of charts", async () => {
    const { page } = opened;
    await follow("Measurements", "Measurements");
    await tabTo("Calls as a table");
    await press("Enter");
    await page.getByRole("table", { name: /^Calls over/ }).waitFor();
    await expectWhole();
  });

  it.each([
    ["agent", "Agents", "Create an agent"],
    ["workflow", "Workflows", "New workflow"],
  ])("writes a new %s", async (what, title, dialog) => {
    const { page } = opened;
    await follow(title, title);
    await tabTo(`New ${what}`);
    await press("Enter");
    await expectWholeDialog(dialog);
    await tabTo(what === "agent" ? "ID" : "Id");
    await page.keyboard.type("fresh");
    await press("Enter");
    await heading(`New ${what} fresh`).waitFor();
    await page.getByRole("button", { name: "Create", exact: true }).waitFor();
    await expectWhole();
  });

  it("opens a definition that cannot be used", async () => {
    const { page } = opened;
    await follow("Workflows", "Workflows");
    await follow("broken.yaml", "Edit broken");
    await page.getByRole("textbox", { name: "Definition of broken" }).waitFor();
    await expectWhole();
  });

  it("decides which text is kept after an agent was changed meanwhile", async () => {
    const { page, service } = opened;
    const file = join(service.cwd, "agents/boss/agent.json");
    await follow("Agents", "Agents");
    await follow("Boss", "Boss");
    await follow("Edit", "Edit Boss");
    await page.getByLabel("Message to Boss").waitFor();
    await tabTo("Description (optional)");
    await page.keyboard.type("Mine");
    writeFileSync(file, readFileSync(file, "utf8").replace("Boss", "Chief"));
    await press("Control+s");
    await page.getByRole("dialog", { name: "Save the agent?" }).waitFor();
    await tabTo("Save");
    await press("Enter");
    await expectWholeDialog("The agent was changed meanwhile");
    await tabTo("Save over it");
    await press("Enter");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
  });

  it("signs out", async () => {
    await tabTo("Sign out");
    await press("Enter");
    await heading("Sign in").waitFor();
  });
});

/** More than any page has. */
const MOST_STOPS = 150;

// These run in the page.

interface WalkedPage {
  walked: { readonly seen: Set<Element>; readonly faults: Set<string> };
  nameOf: (element: Element) => string;
}

function nameOfFocus(): string {
  // The focus of an editor is within its shadow root.
  const element = document.activeElement?.shadowRoot?.activeElement ?? document.activeElement;
  if (element === null || element === document.body) return "";
  const { labels } = element as HTMLInputElement;
  const label = [...(labels ?? [])].map(({ textContent }) => textContent.trim()).join(" ");
  return element.getAttribute("aria-label") ?? (label || element.textContent.trim().replaceAll(/\s+/g, " "));
}

/** A hidden page does not read its data again. */
function hidePage(): void {
  Object.defineProperty(document, "hidden", { configurable: true, value: true });
}

function showPage(): void {
  Reflect.deleteProperty(document, "hidden");
}

function beginWalk(): void {
  const page = globalThis as unknown as WalkedPage;
  page.nameOf = (element) => {
    const labelledBy = element.getAttribute("aria-labelledby");
    const labels = [...((element as HTMLInputElement).labels ?? [])].map(({ textContent }) => textContent);
    const texts = [
      element.getAttribute("aria-label"),
      labelledBy && document.getElementById(labelledBy)?.textContent,
      ...labels,
      element.textContent,
    ];
    return texts.find((text) => text?.trim())?.trim() ?? "";
  };
  page.walked = { seen: new Set(), faults: new Set() };
}

/** Returns whether the walk came back to a known element. */
function noteStop(): boolean {
  const { walked, nameOf } = globalThis as unknown as WalkedPage;
  const { seen, faults } = walked;
  const element = document.activeElement?.shadowRoot?.activeElement ?? document.activeElement;
  if (element === null || element === document.body) return false;
  if (seen.has(element)) return true;
  seen.add(element);
  const name = nameOf(element);
  const about = `${element.tagName.toLowerCase()} "${name.slice(0, 60)}"`;
  if (name === "") faults.add(`without a name: ${element.outerHTML.slice(0, 120)}`);
  const { width, height, bottom, top } = element.getBoundingClientRect();
  if (width < 1 || height < 1 || bottom < 0 || top > innerHeight) faults.add(`not in view: ${about}`);
  const marks = (at: Element | null) => at !== null && getComputedStyle(at).outlineStyle !== "none";
  // The frame of the message's form changes its colour.
  const frame = element.closest("form:focus-within");
  const isFramed = frame !== null && element.tagName === "TEXTAREA";
  const editor = element.closest(".cm-editor");
  const isSwitch = element.parentElement?.matches(":focus-within") === true && element.tagName === "INPUT";
  if (!marks(element) && !marks(editor) && !isFramed && !isSwitch) faults.add(`without a mark of the focus: ${about}`);
  return false;
}

function endWalk(): { missed: string[]; faults: string[]; stops: number } {
  const { walked, nameOf } = globalThis as unknown as WalkedPage;
  const { seen, faults } = walked;
  const operated = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
  // The rest of the page is inert while a dialog is open.
  const within = document.querySelector("[role=dialog]") ?? document;
  const missed = [...within.querySelectorAll<HTMLElement>(operated)].filter((element) => {
    if (seen.has(element) || element.tabIndex < 0 || (element as HTMLButtonElement).disabled) return false;
    // Of a group, Tab reaches the chosen one.
    if (element.matches('[type="radio"], [role="radio"], [role="tab"], [role="treeitem"]')) return false;
    const { width, height } = element.getBoundingClientRect();
    return element.checkVisibility() && width > 0 && height > 0;
  });
  return {
    missed: missed.map((element) => `${element.tagName.toLowerCase()} "${nameOf(element).slice(0, 60)}"`),
    faults: [...faults],
    stops: seen.size,
  };
}
