import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

const [SERVICE, OWNER, MEMBER] = [
  "service-token-0123456789abcdef0123456789",
  "owner-token-0123456789abcdef0123456789",
  "member-token-0123456789abcdef012345678",
];
const ask = `
name: Ask a person
nodes:
  ask: { type: human_gate, name: Go on?, with: { title: Shall it go on?, message: It is late. } }
`;
const rate = `
name: Rate
nodes:
  rate:
    type: human_gate
    with: { title: How good is it?, timeout: 1h, form: { type: object, required: [stars], properties: { stars: { type: integer } } } }
`;

describe.skipIf(findChromium() === undefined)("decisions that wait, in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: { "agents/helper/agent.json": { name: "Helper" }, "workflows/ask.yaml": ask, "workflows/rate.yaml": rate },
      config: {
        workflow: { token: SERVICE, definitionsDir: "workflows" },
        agent: {
          tokens: [
            { token: OWNER, userId: "owner", role: "owner" },
            { token: MEMBER, userId: "mia", role: "member" },
          ],
        },
      },
    });
    await opened.page.addInitScript(recordNotifications);
    await opened.page.reload();
    await opened.signIn(OWNER);
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  const gates = (of = "Ask a person") => opened.page.getByRole("list", { name: `Decisions of ${of}` }).getByRole("listitem");
  /** The line of a gate, which opens in place. */
  const line = (at = 0, of = "Ask a person") => gates(of).nth(at).getByRole("button", { expanded: false });
  const focused = () =>
    opened.page.evaluate(() => document.activeElement?.getAttribute("data-key") ?? document.activeElement?.id);
  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  const title = () => opened.page.title();
  const told = () => opened.page.evaluate(() => (globalThis as unknown as { notified: string[] }).notified);
  async function started(workflowId = "ask"): Promise<string> {
    const answer = await fetch(`${opened.service.url("workflow")}/api/workflow/webhook?id=${workflowId}`, {
      method: "POST",
      headers: { "x-workflow-service-token": SERVICE, "content-type": "application/json" },
      body: "{}",
    });
    return ((await answer.json()) as { runId: string }).runId;
  }

  it("include gates of workflows: counted in the navigation and in the title, on every page", async () => {
    const { page } = opened;
    expect(await title()).toBe("Overview · Portico");
    await started();
    await page.getByRole("navigation").getByRole("link", { name: "Approvals (1 waiting)" }).waitFor();
    await expect.poll(title).toBe("(1) Overview · Portico");
    await opened.goTo("Runs");
    expect(await title()).toBe("(1) Runs · Portico");
    await page.setViewportSize(PHONE);
    await button("Menu (approvals waiting: 1)").waitFor();
    await page.setViewportSize(DESKTOP);
  });

  it("are one line each, opened in place, with a link to the run", async () => {
    const { page } = opened;
    await page.getByRole("navigation").getByRole("link", { name: "Approvals" }).click();
    await line().click();
    await gates().getByText("It is late.").waitFor();
    expect(await gates().getByRole("link", { name: "The run that waits" }).getAttribute("href")).toMatch(
      /^#\/workflows\/ask\/wrun_/,
    );
    expect(await findingsInEveryLook(page)).toEqual([]);
    await button("Approve").click();
    await page.getByText("No decision waits").first().waitFor();
    await expect.poll(title).toBe("Approvals · Portico");
    expect(await focused()).toBe("page-title");
  });

  it("give the focus to the next one, which is said and not opened, and go from the badge at once", async () => {
    const { page } = opened;
    for (let count = 0; count < 3; count++) await started();
    await expect.poll(() => gates().count()).toBe(3);
    const next = await gates().nth(1).getByRole("button").getAttribute("data-key");
    await line().click();
    await button("Reject").click();
    await expect.poll(focused).toBe(next);
    await page.getByText("rejected. Next: Shall it go on?, Ask a person").waitFor();
    await expect.poll(title).toBe("(2) Approvals · Portico");
    expect(await page.getByRole("button", { expanded: true }).count()).toBe(0);
  });

  it("keep what was typed while another line is open", async () => {
    const { page } = opened;
    await line().click();
    await gates().nth(0).getByLabel("Comment (optional)").fill("Not before noon");
    await gates().nth(1).getByRole("button", { expanded: false }).click();
    await gates().nth(0).getByLabel("Comment (optional)").waitFor({ state: "hidden" });
    await gates().nth(0).getByRole("button", { expanded: false }).click();
    const comment = gates().nth(0).getByLabel("Comment (optional)");
    expect(await comment.inputValue()).toBe("Not before noon");
    await comment.fill("");
    await page.getByRole("button", { expanded: true }).click();
  });

  it("are decided together: rejected all, approved those that ask for nothing, after one question with the list", async () => {
    const { page } = opened;
    await started("rate");
    await expect.poll(() => gates("Rate").count()).toBe(1);
    for (const box of await page.getByRole("checkbox", { name: /^Select / }).all()) await box.check();
    await page.getByText("3 selected").waitFor();
    await button("Reject selected").waitFor();
    expect(await button("Approve selected").count()).toBe(0);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByRole("checkbox", { name: "Select How good is it?, Rate" }).uncheck();
    await button("Approve selected").click();
    const dialog = page.getByRole("alertdialog");
    expect(await dialog.getByRole("listitem").allTextContents()).toHaveLength(2);
    await dialog.getByRole("button", { name: "Approve all" }).click();
    await expect.poll(() => gates().count()).toBe(0);
    await page.getByText("2 approved. Next: How good is it?, Rate").waitFor();
    await page.getByRole("checkbox", { name: "Select How good is it?, Rate" }).check();
    await button("Reject selected").click();
    await dialog.getByRole("button", { name: "Reject all" }).click();
    await page.getByText("No decision waits").first().waitFor();
  });

  it("are grouped, filtered, and in the order of their end, if one asks for that", async () => {
    const { page } = opened;
    await started("rate");
    for (let count = 0; count < 15; count++) await started();
    await expect.poll(() => gates().count()).toBe(15);
    const groups = () =>
      page.getByRole("list", { name: /^Decisions of / }).evaluateAll((lists) => lists.map((list) => list.ariaLabel));
    expect(await groups()).toEqual(["Decisions of Ask a person", "Decisions of Rate"]);
    await page.getByLabel("Order").selectOption("Soonest to expire first");
    await expect.poll(groups).toEqual(["Decisions of Rate", "Decisions of Ask a person"]);
    await page.getByRole("searchbox", { name: "Find decisions" }).fill("good rate");
    await expect.poll(groups).toEqual(["Decisions of Rate"]);
    await page.getByRole("searchbox", { name: "Find decisions" }).fill("");
    await expect.poll(() => gates().count()).toBe(15);
  });

  it("are for a thumb: 16 on a phone are short, and the buttons of an open one are in sight", async () => {
    const { page } = opened;
    await page.setViewportSize(PHONE);
    const height = await page
      .getByRole("list", { name: /^Decisions of / })
      .evaluateAll((lists) => lists.reduce((sum, list) => sum + list.getBoundingClientRect().height, 0));
    expect(height).toBeLessThan(16 * 80);
    await line(0, "Rate").click();
    const approve = button("Approve");
    await approve.waitFor();
    const box = (await approve.boundingBox())!;
    expect(box.height).toBeGreaterThanOrEqual(48);
    await expect.poll(async () => (await approve.boundingBox())!.y + box.height).toBeLessThanOrEqual(PHONE.height);
    await page.getByLabel("stars").fill("5");
    await approve.click();
    await expect.poll(() => gates("Rate").count()).toBe(0);
    await page.setViewportSize(DESKTOP);
  });

  it("leave the badge of another tab when they are decided in this one", async () => {
    const { page } = opened;
    const other = await page.context().newPage();
    await other.goto(page.url().split("#")[0]!);
    await other.getByLabel("Instance token").fill(OWNER);
    await other.getByRole("button", { name: "Sign in" }).click();
    await expect.poll(() => other.title()).toBe("(15) Overview · Portico");
    for (const box of await page.getByRole("checkbox", { name: /^Select / }).all()) await box.check();
    await button("Reject selected").click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Reject all" }).click();
    await page.getByText("No decision waits").first().waitFor();
    await expect.poll(() => other.title()).toBe("Overview · Portico");
    await other.close();
  });

  it("are told by the browser only after a button has asked for it, with a number and no contents", async () => {
    await started();
    await expect.poll(title).toBe("(1) Approvals · Portico");
    expect(await told()).toEqual([]);
    await button("Notify me").click();
    await button("Stop notifying me").waitFor();
    expect(await told()).toEqual(["asked"]);
    await started();
    await expect.poll(told).toEqual(["asked", "2 decisions wait for you"]);
    await button("Stop notifying me").click();
    await started();
    await expect.poll(title).toBe("(3) Approvals · Portico");
    expect(await told()).toHaveLength(2);
  });

  it("of workflows are shown to a member who has opened the workflow service", async () => {
    const { page } = opened;
    await button("Sign out").click();
    await opened.signIn(MEMBER);
    await page.getByRole("navigation").getByRole("link", { name: "Approvals", exact: true }).click();
    expect(await title()).toBe("Approvals · Portico");
    await page.getByRole("link", { name: "Open the workflow service" }).click();
    await page.getByLabel("Workflow service token").fill(SERVICE);
    await button("Continue").click();
    await page.getByRole("table", { name: "Workflows" }).waitFor();
    await page.getByRole("navigation").getByRole("link", { name: "Approvals" }).click();
    await expect.poll(() => gates().count()).toBe(3);
    // A member gets no grant: it reads the question, and is offered nothing that the service refuses.
    expect(await page.getByRole("checkbox", { name: /^Select / }).count()).toBe(0);
    await line().click();
    await page.getByText("Only an owner decides at gates.").waitFor();
    expect(await button("Approve").count()).toBe(0);
  });
});

/** Runs in the page before its own scripts: a browser without a screen shows no notifications. */
function recordNotifications(): void {
  const notified: string[] = [];
  class Recorded {
    static permission = "default";
    static async requestPermission(): Promise<string> {
      notified.push("asked");
      return (Recorded.permission = "granted");
    }
    constructor(_title: string, { body }: { readonly body: string }) {
      notified.push(body);
    }
    close(): void {}
    addEventListener(): void {}
  }
  Object.assign(globalThis, { Notification: Recorded, notified });
}
