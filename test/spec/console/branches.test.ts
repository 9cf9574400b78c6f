import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole, PHONE, withFakeModel } from "../../browser/console.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { createGate } from "../../harness/gate.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { events, json } from "../../harness/upstream-answers.ts";

describe.skipIf(findChromium() === undefined)("branches of a conversation in the web console", () => {
  const browser = useChromium();
  let upstream: FakeUpstream;
  let opened: OpenConsole;
  beforeAll(async () => {
    upstream = await startFakeUpstream({ models: ["large"] });
    opened = await openConsole({
      browser: browser(),
      files: { "agents/helper/agent.json": { name: "Helper" } },
      ...withFakeModel(upstream),
      context: { permissions: ["clipboard-read", "clipboard-write"] },
    });
  });
  afterAll(async () => {
    await opened[Symbol.asyncDispose]();
    await upstream.close();
  });
  beforeEach(async () => {
    await page().evaluate(() => (location.hash = "#/agents"));
    await page().evaluate(() => (location.hash = "#/agents/helper"));
    await page().getByRole("heading", { name: "New conversation" }).waitFor();
  });

  const page = () => opened.page;
  const messages = () => page().getByRole("region", { name: "Messages" });
  const input = () => page().getByLabel("Message to Helper");
  const turn = (index: number) => messages().getByRole("article").nth(index);
  const button = (name: string, index = 0) => turn(index).getByRole("button", { name, exact: true });
  const versions = (index = 0) => turn(index).getByRole("group", { name: "Versions of this message" });
  const focused = () => page().evaluate(() => document.activeElement?.textContent?.trim());

  async function say(words: string, answer: string): Promise<void> {
    upstream.answerNext(events(messagesEvents(answer)));
    await input().fill(words);
    await input().press("Enter");
    await messages().getByText(answer, { exact: true }).waitFor();
  }

  it("an answer is made again, and both answers can be shown with the arrows", async () => {
    await say("Tell me a joke", "the first joke");
    upstream.answerNext(events(messagesEvents("a better joke")));
    await button("Regenerate answer").click();
    await messages().getByText("a better joke", { exact: true }).waitFor();
    await versions().getByText("2 / 2").waitFor();
    expect(await messages().getByText("the first joke").count()).toBe(0);
    expect(await turn(0).getByText("Tell me a joke").count()).toBe(1);
    expect(await findingsInEveryLook(page())).toEqual([]);
    await button("Version before").click();
    await messages().getByText("the first joke", { exact: true }).waitFor();
    await versions().getByText("1 / 2").waitFor();
    expect(await messages().getByText("a better joke").count()).toBe(0);
    // The next message continues the branch that is shown.
    await say("Another one", "the second joke");
    expect(await messages().textContent()).toContain("the first joke");
    const sent = (await upstream.requests.at(-1)!.json()) as { messages: unknown[] };
    expect(JSON.stringify(sent.messages)).toContain("the first joke");
    expect(JSON.stringify(sent.messages)).not.toContain("a better joke");
  });

  it("a message is edited and sent again with the keyboard; Escape leaves it as it was", async () => {
    await say("one", "answer one");
    await say("two", "answer two");
    await button("Edit message", 1).focus();
    await page().keyboard.press("Enter");
    const edited = page().getByLabel("Edited message");
    expect(await edited.inputValue()).toBe("two");
    await page().keyboard.press("End");
    await page().keyboard.type(" and more");
    expect(await findingsInEveryLook(page())).toEqual([]);
    await page().keyboard.press("Escape");
    expect(await edited.count()).toBe(0);
    await expect.poll(focused).toBe("Edit message");
    await page().keyboard.press("Enter");
    expect(await edited.inputValue()).toBe("two");
    await edited.fill("three");
    upstream.answerNext(events(messagesEvents("answer three")));
    await page().keyboard.press("Enter");
    await messages().getByText("answer three", { exact: true }).waitFor();
    await versions(1).getByText("2 / 2").waitFor();
    expect(await messages().textContent()).not.toContain("answer two");
    expect(await versions(0).count()).toBe(0);
    await button("Version before", 1).focus();
    await page().keyboard.press("Enter");
    await messages().getByText("answer two", { exact: true }).waitFor();
    // At the first version, the focus is on the arrow to the next one.
    await expect.poll(focused).toBe("Next version");
    await page().keyboard.press("Enter");
    await messages().getByText("answer three", { exact: true }).waitFor();
  });

  it("the branch that was chosen is shown after a reload", async () => {
    await say("north", "answer north");
    await button("Edit message").click();
    await page().getByLabel("Edited message").fill("south");
    upstream.answerNext(events(messagesEvents("answer south")));
    await turn(0).getByRole("button", { name: "Send again" }).click();
    await messages().getByText("answer south", { exact: true }).waitFor();
    await versions().getByText("2 / 2").waitFor();
    await button("Version before").click();
    await messages().getByText("answer north", { exact: true }).waitFor();
    const address = page().url();
    await page().reload();
    await opened.signIn();
    await page().evaluate((url) => (location.href = url), address);
    await messages().getByText("answer north", { exact: true }).waitFor();
    await versions().getByText("1 / 2").waitFor();
  });

  it("while a turn runs, nothing can be edited or made again", async () => {
    await say("first", "answer first");
    const gate = createGate();
    const all = messagesEvents("slowly said");
    upstream.answerNext(events([...all.slice(0, 3), gate.opened, ...all.slice(3)]));
    await button("Regenerate answer").click();
    await page().getByRole("button", { name: "Stop" }).waitFor();
    for (const name of ["Edit message", "Regenerate answer"])
      expect(await messages().getByRole("button", { name }).count()).toBe(0);
    gate.open();
    await messages().getByText("slowly said", { exact: true }).waitFor();
    await button("Regenerate answer").waitFor();
  });

  it("a failed turn says why, also after a reload, and its message is sent again in its place", async () => {
    const refused = () =>
      upstream.answerNext(json(400, { type: "error", error: { type: "invalid_request_error", message: "The moon is full" } }));
    refused();
    await input().fill("howl");
    await input().press("Enter");
    await messages().getByText("The moon is full").waitFor();
    const address = page().url();
    await page().reload();
    await opened.signIn();
    await page().evaluate((url) => (location.href = url), address);
    await messages().getByText("The moon is full").waitFor();
    await messages().getByText("model_refused").waitFor();
    expect(await findingsInEveryLook(page())).toEqual([]);
    upstream.answerNext(events(messagesEvents("a howl")));
    await button("Send again").click();
    await messages().getByText("a howl", { exact: true }).waitFor();
    expect(await messages().getByText("The moon is full").count()).toBe(0);
    const sent = (await upstream.requests.at(-1)!.json()) as { messages: { content: unknown }[] };
    expect(JSON.stringify(sent.messages)).toContain("howl");
    expect(sent.messages).toHaveLength(1);
    await button("Regenerate answer").waitFor();
  });

  it("a message and an answer are copied", async () => {
    upstream.answerNext(events(messagesEvents("and **that**")));
    await input().fill("copy this");
    await input().press("Enter");
    await button("Copy answer").waitFor();
    await button("Copy message").click();
    await expect.poll(() => page().evaluate(() => navigator.clipboard.readText())).toBe("copy this");
    await button("Copy answer").click();
    await expect.poll(() => page().evaluate(() => navigator.clipboard.readText())).toBe("and **that**");
  });

  it("on a phone, everything is inside of the page", async () => {
    await page().setViewportSize(PHONE);
    await say("a long message ".repeat(10).trim(), "answer on a phone");
    upstream.answerNext(events(messagesEvents("another answer on a phone")));
    await button("Regenerate answer").click();
    await versions().getByText("2 / 2").waitFor();
    await button("Edit message").click();
    await page().getByLabel("Edited message").waitFor();
    // Nothing is above the button: otherwise the click would wait.
    await turn(0).getByRole("button", { name: "Send again" }).click({ trial: true });
    expect(await page().evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(PHONE.width);
    expect(await findingsInEveryLook(page())).toEqual([]);
  });
});
