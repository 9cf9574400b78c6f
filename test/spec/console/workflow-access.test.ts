import { describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../harness/chromium.ts";
import { openConsole } from "../../harness/console.ts";

describe.skipIf(findChromium() === undefined)("the workflow service in the web console", () => {
  const browser = useChromium();

  it("has a token of its own: it is asked for once, and a wrong one is refused", async () => {
    await using opened = await openConsole({ browser: browser() });
    const { page, service } = opened;
    await opened.goTo("Workflows");
    const field = page.getByLabel("Workflow service token");
    await field.fill("not-the-token");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("This token is not accepted by the workflow service.").waitFor();
    await field.fill((JSON.parse(service.read("credentials.json")) as { workflowServiceToken: string }).workflowServiceToken);
    await page.getByRole("button", { name: "Continue" }).click();
    await expect.poll(() => field.count()).toBe(0);
    await opened.goTo("Overview");
    await opened.goTo("Workflows");
    expect(await field.count()).toBe(0);
  });

  it("is not asked for where the instance token is the service's, too", async () => {
    const token = "one-token-for-both-services-0123456789abcdef";
    await using opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      config: { workflow: { token }, agent: { tokens: [{ token, userId: "owner", role: "owner" }] } },
    });
    const { page } = opened;
    await opened.signIn(token);
    await opened.goTo("Workflows");
    expect(await page.getByLabel("Workflow service token").count()).toBe(0);
    expect(await page.getByRole("alert").count()).toBe(0);
  });
});
