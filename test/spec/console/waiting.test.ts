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

describe.skipIf(findChromium() === undefined)("decisions that wait, in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      files: { "agents/helper/agent.json": { name: "Helper" }, "workflows/ask.yaml": ask },
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

  const gates = () => opened.page.getByRole("list", { name: "Waiting gates" }).getByRole("listitem");
  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  const title = () => opened.page.title();
  const told = () => opened.page.evaluate(() => (globalThis as unknown as { notified: string[] }).notified);
  async function started(): Promise<string> {
    const answer = await fetch(`${opened.service.url("workflow")}/api/workflow/webhook?id=ask`, {
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

  it("are decided in one place, with a link to the run", async () => {
    const { page } = opened;
    await page.getByRole("navigation").getByRole("link", { name: "Approvals" }).click();
    await gates().getByText("It is late.").waitFor();
    expect(await gates().getByRole("link", { name: "its run" }).getAttribute("href")).toMatch(/^#\/workflows\/ask\/wrun_/);
    expect(await findingsInEveryLook(page)).toEqual([]);
    await button("Approve").click();
    await page.getByText("No gate of a workflow waits for a decision").waitFor();
    await expect.poll(title).toBe("Approvals · Portico");
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
