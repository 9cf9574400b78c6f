import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole, withFakeModel } from "../../browser/console.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { createGate } from "../../harness/gate.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { after, events } from "../../harness/upstream-answers.ts";

describe.skipIf(findChromium() === undefined)("a message to a running turn in the web console", () => {
  const browser = useChromium();
  let upstream: FakeUpstream;
  let opened: OpenConsole;
  beforeAll(async () => {
    upstream = await startFakeUpstream({ models: ["large"] });
    opened = await openConsole({
      browser: browser(),
      files: { "agents/helper/agent.json": { name: "Helper" } },
      ...withFakeModel(upstream),
    });
  });
  afterAll(async () => {
    await opened[Symbol.asyncDispose]();
    await upstream.close();
  });
  beforeEach(async () => {
    upstream.reset();
    await page().evaluate(() => (location.hash = "#/agents"));
    await page().evaluate(() => (location.hash = "#/agents/helper"));
    await page().getByRole("heading", { name: "New conversation" }).waitFor();
  });

  const page = () => opened.page;
  const messages = () => page().getByRole("region", { name: "Messages" });
  const input = () => page().getByLabel("Message to Helper");
  const tellNow = () => page().getByRole("button", { name: "Tell now" });
  /** The page keeps no token: after a reload, the user signs in again. */
  const reload = async () => {
    const address = page().url();
    await page().reload();
    await opened.signIn();
    await page().evaluate((url) => (location.href = url), address);
  };
  const order = async (...texts: readonly string[]) => {
    const shown = (await messages().textContent())!;
    return texts.map((text) => shown.indexOf(text)).every((at, index, all) => at >= 0 && at > (all[index - 1] ?? -1));
  };

  it("is told with the button or Ctrl Enter, is shown as pending and then where it was told, also after a reload", async () => {
    const gate = createGate();
    upstream.answerNext(after(gate.opened, events(messagesEvents("a red house"))), events(messagesEvents("two blue houses")));
    await input().fill("Draw a house");
    await input().press("Enter");
    await upstream.request(1);
    await input().fill("In blue");
    await tellNow().click();
    await messages().getByText("In blue", { exact: true }).waitFor();
    await input().fill("And two");
    await input().press("Control+Enter");
    await expect.poll(() => messages().getByText("The agent reads this before its next step.").count()).toBe(2);
    expect(await findingsInEveryLook(page())).toEqual([]);
    gate.open();
    await messages().getByText("two blue houses", { exact: true }).waitFor();
    expect(await order("Draw a house", "a red house", "In blue", "And two", "two blue houses")).toBe(true);
    expect(await messages().getByText("The agent reads this before its next step.").count()).toBe(0);
    expect(await messages().getByRole("article").count()).toBe(1);
    await reload();
    await messages().getByText("two blue houses", { exact: true }).waitFor();
    expect(await order("Draw a house", "a red house", "In blue", "And two", "two blue houses")).toBe(true);
    expect(await messages().getByRole("article").count()).toBe(1);
  });

  it("is still pending after a reload, and comes back into the composer if the turn is stopped then", async () => {
    upstream.answerNext(after(new Promise(() => {}), events(messagesEvents("never"))));
    await input().fill("Draw a house");
    // No turn runs yet: it sends, too.
    await input().press("Control+Enter");
    await upstream.request(1);
    await input().fill("In blue");
    await input().press("Control+Enter");
    const pending = () => messages().getByText("The agent reads this before its next step.");
    await pending().waitFor();
    await page().waitForURL((url) => /conv_/.test(url.href));
    await reload();
    await pending().waitFor();
    expect(await messages().getByText("In blue", { exact: true }).count()).toBe(1);
    await page().getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => input().inputValue()).toBe("In blue");
    await input().fill("");
  });

  it("comes back into the composer if the turn is stopped before the agent was told", async () => {
    upstream.answerNext(after(new Promise(() => {}), events(messagesEvents("never"))));
    await input().fill("Draw a house");
    await input().press("Enter");
    await upstream.request(1);
    await input().fill("In blue");
    await tellNow().click();
    await messages().getByText("The agent reads this before its next step.").waitFor();
    await page().getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => input().inputValue()).toBe("In blue");
    expect(await tellNow().count()).toBe(0);
  });

  it("is told with the key that commands have on the system of the user", async () => {
    upstream.answerNext(after(new Promise(() => {}), events(messagesEvents("never"))));
    await page().addInitScript(() => Object.defineProperty(navigator, "platform", { get: () => "MacIntel" }));
    await reload();
    await input().fill("Draw a house");
    await input().press("Enter");
    await page().getByText("Cmd Enter tells the agent now").waitFor();
    await input().fill("In blue");
    await input().press("Meta+Enter");
    await messages().getByText("The agent reads this before its next step.").waitFor();
    await page().getByRole("button", { name: "Stop" }).click();
    await expect.poll(() => input().inputValue()).toBe("In blue");
  });
});
