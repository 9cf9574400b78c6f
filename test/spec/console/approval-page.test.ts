import { describe, expect, it } from "vitest";
import { findChromium, type Page, useChromium } from "../../browser/chromium.ts";
import { DESKTOP, findingsInEveryLook } from "../../browser/console.ts";
import { startHookServer } from "../../harness/hook-server.ts";
import { form, linked, startGated } from "../../harness/linked-gate.ts";
import type { WorkflowService } from "../../harness/workflow-app.ts";

describe.skipIf(findChromium() === undefined)("the page of an approval link in a browser", () => {
  const browser = useChromium();

  async function shown(service: WorkflowService, path: string): Promise<{ page: Page; violations: string[] }> {
    const page = await browser().newPage({ viewport: DESKTOP });
    const violations: string[] = [];
    page.on("console", (message) => message.type() === "error" && violations.push(message.text()));
    await page.goto(service.url + path);
    return { page, violations };
  }

  it("is filled in and approved with a keyboard, on a phone too, in light and dark", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook, {}, { form });
    const { runId, path } = await linked(service, hook);
    const { page } = await shown(service, path);
    // axe needs to run a script in the page, which the policy of the page refuses to the page itself.
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByLabel("Who may read it?").selectOption("members");
    await page.getByLabel("copies (optional)").fill("0");
    await page.getByLabel("copies (optional)").press("Enter");
    expect((await service.detail("gated", runId)).status).toBe("waiting_human");
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("alert").waitFor();
    expect(await page.getByLabel("copies (optional)").getAttribute("aria-invalid")).toBe("true");
    expect(await page.getByLabel("Who may read it?").inputValue()).toBe('"members"');
    expect(await findingsInEveryLook(page)).toEqual([]);
    await page.getByLabel("copies (optional)").fill("2");
    await page.getByLabel("Comment (optional)").fill("From a browser");
    await page.getByRole("button", { name: "Approve" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Approved" }).waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
    expect((await service.ended("gated", runId)).finalOutputs.decision).toMatchObject({
      comment: "From a browser",
      values: { audience: "members", copies: 2 },
    });
    await page.close();
  });

  it("keeps its style under its policy, and runs nothing of what the gate says", async () => {
    await using hook = await startHookServer();
    await using service = await startGated(hook);
    const { path } = await linked(service, hook, { what: "<script>document.title='taken'</script><img src=x onerror=alert(1)>" });
    const { page, violations } = await shown(service, path);
    expect(await page.title()).toBe("Publish <b>this</b>?");
    expect(violations).toEqual([]);
    expect(await page.locator("main").evaluate((main) => getComputedStyle(main).maxWidth)).toBe("640px");
    expect(await page.locator("script, img").count()).toBe(0);
    expect(violations).toEqual([]);
    await page.getByRole("button", { name: "Reject" }).click();
    await page.getByRole("heading", { name: "Rejected" }).waitFor();
    await page.close();
  });
});
