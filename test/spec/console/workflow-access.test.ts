import { describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { openConsole } from "../../browser/console.ts";

describe.skipIf(findChromium() === undefined)("the workflow service in the web console", () => {
  const browser = useChromium();

  const MEMBER = "token-of-a-member-0123456789";
  const members = (...more: object[]) => ({
    agent: { tokens: [{ token: MEMBER, userId: "ada", role: "member" }, ...more] },
  });

  it("needs no token of its own from an owner: one sign-in is enough, and the token is renewed when it ends", async () => {
    await using opened = await openConsole({ browser: browser() });
    const { page } = opened;
    await opened.goTo("Workflows");
    await page.getByText("No workflow is deployed").waitFor();
    expect(await page.getByLabel("Workflow service token").count()).toBe(0);
    // As if the issued token had ended early.
    let refused = 0;
    await page.route("**/api/workflows", (route) =>
      route.continue({
        headers: { ...route.request().headers(), ...(refused++ === 0 && { "x-workflow-service-token": "ended" }) },
      }),
    );
    await opened.goTo("Overview");
    await opened.goTo("Workflows");
    await page.getByText("No workflow is deployed").waitFor();
    expect(refused).toBeGreaterThan(1);
    expect(await page.getByLabel("Workflow service token").count()).toBe(0);
  });

  it("asks a member once for its own token, and refuses a wrong one", async () => {
    await using opened = await openConsole({ browser: browser(), isSignedIn: false, config: members() });
    await opened.signIn(MEMBER);
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

  it("is not asked for where the user's token is the service's, too", async () => {
    const token = "one-token-for-both-services-0123456789abcdef";
    await using opened = await openConsole({
      browser: browser(),
      isSignedIn: false,
      config: { workflow: { token }, ...members({ token, userId: "eve", role: "member" }) },
    });
    const { page } = opened;
    await opened.signIn(token);
    await opened.goTo("Workflows");
    expect(await page.getByLabel("Workflow service token").count()).toBe(0);
    expect(await page.getByRole("alert").count()).toBe(0);
  });
});
