import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";

describe.skipIf(findChromium() === undefined).each([
  ["on a desktop", {}],
  ["on a phone", { viewport: PHONE, isMobile: true, hasTouch: true }],
])("a sign-in link of the web console, %s", (_look, context) => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({ browser: browser(), isSignedIn: false, context });
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const heading = (name: string) => opened.page.getByRole("heading", { level: 1, name });
  const newLink = async () => (await opened.service.run("console")).stdout.trim();
  /** As a browser opens a link from elsewhere: the page is loaded anew. */
  const open = async (link: string) => {
    await opened.page.goto("about:blank");
    await opened.page.goto(link);
  };
  const goTo = async (title: string) => {
    const menu = opened.page.getByRole("button", { name: "Menu" });
    if (await menu.isVisible()) await menu.click();
    await opened.goTo(title);
  };
  const signOut = async () => {
    const menu = opened.page.getByRole("button", { name: "Menu" });
    if (await menu.isVisible()) await menu.click();
    await opened.page.getByRole("button", { name: "Sign out" }).click();
    await heading("Sign in").waitFor();
  };

  it("signs in, to all areas, and its code leaves the address bar at once", async () => {
    const link = await newLink();
    const code = link.split("/").at(-1)!;
    const requested: string[] = [];
    opened.page.on("request", (request) => requested.push(request.url(), request.headers()["referer"] ?? ""));
    await open(link);
    await heading("Overview").waitFor();
    expect(opened.page.url()).not.toContain(code);
    // Browsers send no fragments: only the body of one POST has the code.
    expect(requested.filter((url) => URL.parse(url)?.hash === "" && url.includes(code))).toEqual([]);
    expect(await opened.page.evaluate(() => JSON.stringify([sessionStorage, localStorage]))).not.toContain(opened.token);
    await goTo("Workflows");
    expect(await opened.page.getByLabel("Workflow service token").count()).toBe(0);
    await opened.page.getByText("No workflow is deployed").waitFor();
  });

  it("lasts over a reload, until the user signs out", async () => {
    await opened.page.reload();
    await heading("Workflows").waitFor();
    await signOut();
    await opened.page.reload();
    await heading("Sign in").waitFor();
  });

  it("that was used shows a page that says what to do, where the token can be typed", async () => {
    const link = await newLink();
    await open(link);
    await heading("Overview").waitFor();
    await signOut();
    await open(link);
    await heading("This link no longer works").waitFor();
    await opened.page.getByText("portico console").waitFor();
    expect(opened.page.url()).not.toContain("sign-in");
    expect(await findingsInEveryLook(opened.page)).toEqual([]);
    await opened.signIn();
    await heading("Overview").waitFor();
  });

  it("signs in on a page that is open already", async () => {
    await signOut();
    const link = await newLink();
    await opened.page.evaluate((url) => location.assign(url), link);
    await heading("Overview").waitFor();
    expect(opened.page.url()).not.toContain("sign-in");
  });

  it("that no longer works leaves a signed-in user signed in", async () => {
    await opened.page.evaluate(() => location.assign("#/sign-in/used"));
    await opened.page.getByText("This sign-in link no longer works").waitFor();
    await heading("Overview").waitFor();
    expect(opened.page.url()).not.toContain("sign-in");
  });

  it("whose session the service no longer accepts leads back to the sign-in", async () => {
    await opened.page.evaluate((url) => location.assign(url), await newLink());
    await opened.page.route("**/api/providers", (route) =>
      route.continue({ headers: { ...route.request().headers(), "x-agent-service-token": "session_ended" } }),
    );
    await goTo("Overview");
    await opened.page.evaluate(() => location.assign("#/providers"));
    await opened.page.getByText("The session has ended. Sign in again.").waitFor();
  });
});
