import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";

const [OWNER, MEMBER] = ["owner-token-0123456789abcdef0123456789", "member-token-0123456789abcdef012345678"];

describe.skipIf(findChromium() === undefined)("the audit of the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      files: { "agents/helper/agent.json": { name: "Helper" } },
      config: {
        agent: {
          tokens: [
            { token: OWNER, userId: "ada", role: "owner" },
            { token: MEMBER, userId: "mia", role: "member" },
          ],
        },
      },
      isSignedIn: false,
    });
    await opened.service.run("token", "issue", "--provider", "demo");
    await opened.signIn(OWNER);
    await opened.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const rows = () => opened.page.getByRole("table", { name: "Changes" }).locator("tbody tr");
  const issue = () =>
    fetch(`${opened.service.url("agent")}/api/safe-tokens`, {
      method: "POST",
      headers: { "x-agent-service-token": OWNER, "content-type": "application/json" },
      body: JSON.stringify({ providerId: "demo" }),
    });

  it("lists who changed what, from where and how it ended, and new changes without another visit", async () => {
    await opened.goTo("Audit");
    const issued = rows().filter({ hasText: "safe-token.issue" });
    await expect.poll(() => issued.count()).toBe(1);
    await expect.poll(() => issued.first().innerText()).toMatch(/tok_[\s\S]*Done[\s\S]*\(command line\)/);
    expect((await issue()).status).toBe(201);
    await expect.poll(() => issued.count()).toBe(2);
    await expect.poll(() => issued.first().innerText()).toMatch(/Done[\s\S]*ada \(owner\)[\s\S]*127\.0\.0\.1/);
  });

  it("leads to the place of an object, and to all entries of a user", async () => {
    const { page } = opened;
    await rows().getByRole("link", { name: "ada (owner)" }).first().click();
    await expect.poll(() => new URL(page.url()).hash).toBe("#/audit?userId=ada");
    await expect.poll(() => rows().filter({ hasText: "command line" }).count()).toBe(0);
    await rows().getByRole("link", { name: /^tok_/ }).first().click();
    await page.getByRole("heading", { level: 1, name: "Providers" }).waitFor();
    await page.goBack();
  });

  it("finds entries by action and by a part of the object", async () => {
    const { page } = opened;
    await opened.goTo("Audit");
    await page.getByLabel("Action", { exact: true }).fill("safe-token.revoke");
    await page.keyboard.press("Enter");
    await page.getByText("No matching entry").waitFor();
    await page.getByRole("link", { name: "Show all entries" }).click();
    await page.getByLabel("Object", { exact: true }).fill("tok_");
    await page.keyboard.press("Enter");
    await expect.poll(() => rows().count()).toBe(2);
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("finds entries by the beginning of the caller's address, and leads from an address to all its entries", async () => {
    const { page } = opened;
    await opened.goTo("Audit");
    await page.getByLabel("From", { exact: true }).fill("127.0.");
    await page.keyboard.press("Enter");
    await expect.poll(() => rows().filter({ hasText: "command line" }).count()).toBe(0);
    await rows().getByRole("link", { name: "127.0.0.1", exact: true }).first().click();
    await expect.poll(() => new URL(page.url()).hash).toBe("#/audit?address=127.0.0.1");
    await rows().first().waitFor();
  });

  it("has fields of a time that do not overlap on a screen of 1,280 pixels", async () => {
    const { page } = opened;
    await page.setViewportSize({ width: 1280, height: 860 });
    await page.getByLabel("Time", { exact: true }).selectOption("Between …");
    const boxes = () =>
      page
        .locator('input[type="datetime-local"]')
        .evaluateAll((inputs) =>
          inputs.map((input) => [input.scrollWidth - input.clientWidth, input.getBoundingClientRect().width]),
        );
    await expect.poll(async () => (await boxes()).length).toBe(2);
    for (const [beyond, width] of await boxes()) {
      expect(beyond).toBeLessThanOrEqual(0);
      expect(width).toBeGreaterThan(225);
    }
  });

  it("shows users who are not owners that only the owner reads it", async () => {
    const { page } = opened;
    await page.getByRole("button", { name: "Sign out" }).click();
    await opened.signIn(MEMBER);
    await page.getByRole("heading", { level: 1 }).waitFor();
    // The navigation leaves it out.
    await page.evaluate(() => (location.hash = "#/audit"));
    await page.getByText("Only the owner can read the audit").waitFor();
  });
});
