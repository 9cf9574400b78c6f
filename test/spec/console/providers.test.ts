import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";

describe.skipIf(findChromium() === undefined)("providers and safe tokens in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      config: { limits: { user: { turnsAtOnce: 7 } } },
      context: { permissions: ["clipboard-read", "clipboard-write"] },
    });
    await opened.goTo("Providers");
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const tokens = () => opened.page.getByRole("table", { name: "Safe tokens" });
  const tokenRow = (label: string) => tokens().getByRole("row").filter({ hasText: label });
  const copied = () => opened.page.evaluate(() => navigator.clipboard.readText());
  const modelsStatus = async (token: string) =>
    (await fetch(`${opened.service.url("proxy")}/models`, { headers: { authorization: `Bearer ${token}` } })).status;

  async function issue(label: string): Promise<string> {
    const { page } = opened;
    await page.getByRole("button", { name: "Issue a token" }).click();
    await page.getByLabel("Label").fill(label);
    await page.getByRole("button", { name: "Issue", exact: true }).click();
    await page.getByRole("button", { name: "Copy token" }).click();
    const token = await copied();
    await page.getByRole("button", { name: "Done" }).click();
    await tokenRow(label).waitFor();
    return token;
  }

  it("lists the providers with their models", async () => {
    const row = opened.page.getByRole("table", { name: "Providers" }).getByRole("row").nth(1);
    expect(await row.locator("th, td").allTextContents()).toEqual([
      ...["demo", "demo", "Messages", "demo"],
      "The service: no provider is set",
      expect.stringMatching(/^\s*Try it\s*with demo\s*$/),
    ]);
  });

  it("lists the limits with where they are set, first those that were changed", async () => {
    const { page } = opened;
    const rows = () => page.getByRole("table", { name: "Limits" }).getByRole("row");
    const cells = (words: string) => rows().filter({ hasText: words }).locator("th, td").allInnerTexts();
    await page.getByRole("tab", { name: "Changed (1)", selected: true }).waitFor();
    expect(await rows().count()).toBe(2);
    expect(await cells("Turns at the same time, for each user.")).toEqual([
      ...["Turns at the same time, for each user.", "7 turns", "Each user"],
      expect.stringMatching(/^Configuration file\s+limits\.user\.turnsAtOnce$/),
    ]);
    await page.getByRole("tab", { name: "Usage" }).click();
    await expect.poll(() => cells("Costs of model calls per day, for each user.")).toContain("No limit");
    await page.getByRole("tab", { name: "Turns" }).click();
    await expect
      .poll(() => cells("Duration of a background turn."))
      .toEqual([
        ...["Duration of a background turn.", "30 minutes", "Each turn"],
        expect.stringMatching(/^Default\s+agent\.webhooks\.timeoutMs\s+PORTICO_WEBHOOK_TIMEOUT_MS$/),
      ]);
    await page.getByRole("tab", { name: "Uploads" }).click();
    await expect
      .poll(() => cells("Bytes of one attachment."))
      .toEqual(["Bytes of one attachment.", "20 MiB", "Each file", "Fixed"]);
  });

  it("a token that is issued is good, and is shown once", async () => {
    const token = await issue("laptop");
    expect(token).toMatch(/^service_[\w-]{43}$/);
    expect(await modelsStatus(token)).toBe(200);
    expect(await opened.page.content()).not.toContain(token);
  });

  it("shows what was used of each model in the last 24 hours, after the first call", async () => {
    const { page, service } = opened;
    const body = JSON.stringify({ model: "demo", max_tokens: 9, messages: [{ role: "user", content: "hello" }] });
    const headers = { "x-api-key": await service.token("demo"), "content-type": "application/json" };
    expect((await fetch(`${service.url("proxy")}/messages`, { method: "POST", headers, body })).status).toBe(200);
    const row = page.getByRole("table", { name: "Usage" }).getByRole("row").nth(1);
    // A call is counted within a second after its end.
    const shown = async () => {
      await opened.goTo("Overview");
      await opened.goTo("Providers");
      return (await row.locator("th, td").allTextContents()).slice(0, 3);
    };
    await expect.poll(shown).toEqual(["demo", "demo", "1"]);
  });

  it("its dialog has no serious finding of axe, and Escape closes it", async () => {
    const { page } = opened;
    const button = page.getByRole("button", { name: "Issue a token" });
    await button.click();
    await page.getByRole("dialog").waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    await expect.poll(() => button.evaluate((element) => element === document.activeElement)).toBe(true);
  });

  it("one token is revoked, and the others stay", async () => {
    const [gone, kept] = [await issue("to go"), await issue("to stay")];
    await tokenRow("to go").getByRole("button", { name: "Revoke" }).click();
    await opened.page.getByRole("alertdialog").getByRole("button", { name: "Revoke" }).click();
    await expect.poll(() => tokenRow("to go").count()).toBe(0);
    expect([await modelsStatus(gone), await modelsStatus(kept)]).toEqual([401, 200]);
  });

  it("all are revoked after a confirmation, and none without it", async () => {
    const { page } = opened;
    const token = await issue("another");
    await page.getByRole("button", { name: "Revoke all" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Cancel" }).click();
    await expect.poll(() => page.getByRole("alertdialog").count()).toBe(0);
    expect(await modelsStatus(token)).toBe(200);
    await page.getByRole("button", { name: "Revoke all" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Revoke all" }).click();
    await page.getByText("No tokens yet").waitFor();
    expect(await modelsStatus(token)).toBe(401);
  });
});
