import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

const PAGES = [
  "Overview",
  "Providers",
  "Agents",
  "Webhooks",
  "Schedules",
  "Workflows",
  "Runs",
  "Measurements",
  "Log",
  "Audit",
  "Approvals",
];

describe.skipIf(findChromium() === undefined)("the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({ browser: browser() });
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  it("is used with the keyboard: a link past the navigation, and focus on the name of each page that is gone to", async () => {
    const { page } = opened;
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim());
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Skip to content");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("content");
    await page.getByRole("navigation").getByRole("link", { name: "Runs" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    await expect.poll(focused).toBe("Runs");
    expect(await page.title()).toBe("Runs · Portico");
  });

  it("an unknown address shows a message", async () => {
    await opened.page.evaluate(() => (location.hash = "#/nowhere"));
    await opened.page.getByRole("heading", { level: 1, name: "Not found" }).waitFor();
  });

  it("follows the system's theme until one is chosen, and keeps the choice", async () => {
    const { page } = opened;
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await background();
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(background).not.toBe(light);
    const dark = await background();
    await page.getByRole("radio", { name: "Light" }).click();
    await expect.poll(background).toBe(light);
    await page.reload();
    await expect.poll(background).toBe(light);
    await page.evaluate(() => localStorage.clear());
    await page.reload();
    await expect.poll(background).toBe(dark);
    await page.emulateMedia({ colorScheme: "light" });
    await opened.signIn();
  });

  it("has its navigation in a menu on a phone, which closes when a page was chosen", async () => {
    const { page } = opened;
    await page.setViewportSize(PHONE);
    expect(await page.getByRole("navigation").count()).toBe(0);
    await page.getByRole("button", { name: "Menu" }).click();
    await opened.goTo("Agents");
    await expect.poll(() => page.getByRole("dialog").count()).toBe(0);
    await page.setViewportSize(DESKTOP);
  });

  it.each(PAGES)(
    "%s has no finding of axe in light and dark, on a desktop and on a phone, and is not wider than its window",
    async (title) => {
      await opened.goTo(title);
      expect(await findingsInEveryLook(opened.page)).toEqual([]);
    },
  );

  it("the sign-in page has none, too", async () => {
    const { page } = opened;
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
  });
});
