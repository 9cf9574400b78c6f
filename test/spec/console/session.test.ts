import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, sayThatPagesAreSkipped, useChromium } from "../../browser/chromium.ts";
import { type OpenConsole, openConsole } from "../../browser/console.ts";

const isSkipped = findChromium() === undefined;
if (isSkipped) sayThatPagesAreSkipped();

describe.skipIf(isSkipped)("signing in to the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({ browser: browser(), isSignedIn: false });
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const overview = () => opened.page.getByRole("heading", { level: 1, name: "Overview" });
  const signInForm = () => opened.page.getByRole("heading", { level: 1, name: "Sign in" });
  const stored = () =>
    opened.page.evaluate(() => ({
      session: JSON.stringify(sessionStorage),
      local: JSON.stringify(localStorage),
      url: location.href,
    }));

  it("a wrong token is refused, and said to be", async () => {
    await opened.signIn("not-the-token");
    await opened.page.getByText("This token is not accepted here.").waitFor();
    expect(await opened.page.getByLabel("Instance token").getAttribute("aria-invalid")).toBe("true");
  });

  it("the token is in memory alone: a page that is loaded again asks for it", async () => {
    await opened.signIn();
    await overview().waitFor();
    expect(JSON.stringify(await stored())).not.toContain(opened.token);
    await opened.page.reload();
    await signInForm().waitFor();
  });

  it("a user who chooses it stays signed in until the tab is closed, and the token is in no URL", async () => {
    await opened.page.getByLabel("Stay signed in until this tab is closed").check();
    await opened.signIn();
    await overview().waitFor();
    const { session, local, url } = await stored();
    expect(session).toContain(opened.token);
    expect(local + url).not.toContain(opened.token);
    await opened.page.reload();
    await overview().waitFor();
  });

  it("signing out forgets it", async () => {
    await opened.page.getByRole("button", { name: "Sign out" }).click();
    await signInForm().waitFor();
    expect(JSON.stringify(await stored())).not.toContain(opened.token);
    await opened.page.reload();
    await signInForm().waitFor();
  });

  it("a token that is no longer accepted leads back to the sign-in, on every page", async () => {
    await opened.signIn();
    await overview().waitFor();
    await opened.goTo("Agents");
    // As if it had been replaced meanwhile: the service itself refuses.
    await opened.page.route("**/api/providers", (route) =>
      route.continue({ headers: { ...route.request().headers(), "x-agent-service-token": "replaced" } }),
    );
    await opened.page.getByRole("navigation").getByRole("link", { name: "Providers" }).click();
    await opened.page.getByText("The token is no longer accepted. Sign in again.").waitFor();
    await signInForm().waitFor();
  });
});
