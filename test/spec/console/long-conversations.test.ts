import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";

const MESSAGES = 500;
/** Elements of the whole page. Without leaving out what is far away, there would be more than 25,000. */
const MOST_ELEMENTS = 6_000;

describe.skipIf(findChromium() === undefined)("a conversation of 500 messages in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({ browser: browser(), files: { "agents/helper/agent.json": { name: "Helper" } } });
    await page().evaluate(() => (location.hash = "#/agents/helper"));
    await page().getByLabel("Message to Helper").fill("Message 1");
    await page().keyboard.press("Enter");
    await messages().getByText("You said: Message 1").waitFor();
    await page().route(/conversations\/.*\/messages/, (route) => {
      const asked = Number(new URL(route.request().url()).searchParams.get("before") ?? MESSAGES + 1);
      const first = Math.max(asked - 50, 1);
      const found = Array.from({ length: asked - first }, (_, index) => message(first + index));
      const more = first > 1 && { before: first };
      return route.fulfill({ json: { conversationId: "c", branch: 1, messages: found, branches: [], skipped: 0, ...more } });
    });
    await page().evaluate(() => (location.hash = "#/agents"));
    const { conversations } = await opened.call("GET", "/api/conversations");
    await page().reload();
    await opened.signIn();
    await page().evaluate((id) => (location.hash = `#/agents/helper/${id}`), conversations[0].conversationId as string);
    await messages().getByText(text(MESSAGES), { exact: true }).waitFor();
    for (let first = MESSAGES - 99; first > 0; first -= 50) {
      await page().getByRole("button", { name: "Earlier messages" }).click();
      await messages().getByText(text(first), { exact: true }).waitFor({ state: "attached" });
    }
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  const page = () => opened.page;
  const messages = () => page().getByRole("region", { name: "Messages" });
  const text = (sequence: number) => `This is message ${sequence}.`;
  const message = (sequence: number) => ({
    ...{ sequence, id: `m${sequence}`, role: sequence % 2 === 1 ? "user" : "assistant", at: "2030-01-01T00:00:00.000Z" },
    parts: [
      ...(sequence % 2 === 0 ? [{ type: "thinking", text: "Let me see" }] : []),
      {
        type: "text",
        text: sequence % 2 === 0 ? `${text(sequence)}\n\n- **one**\n- *two*\n\n\`\`\`js\ncode()\n\`\`\`` : text(sequence),
      },
    ],
  });
  const elements = () => page().evaluate(() => document.querySelectorAll("*").length);
  const whole = () => messages().getByRole("article").count();
  const isInView = (sequence: number) =>
    messages()
      .getByText(text(sequence))
      .first()
      .evaluate((element) => {
        const [box, view] = [element.getBoundingClientRect(), element.closest(".log")!.getBoundingClientRect()];
        return box.bottom > view.top && box.top < view.bottom;
      });

  it("renders what is near the visible part, and of the others their words alone", async () => {
    await expect.poll(elements).toBeLessThan(MOST_ELEMENTS);
    await expect.poll(whole).toBeLessThan(40);
    const words = await messages().textContent();
    for (let sequence = 1; sequence <= MESSAGES; sequence++) expect(words).toContain(text(sequence));
    expect(await findingsInEveryLook(page())).toEqual([]);
  });

  it("adds no height to the page", async () => {
    expect(await page().evaluate(() => document.documentElement.scrollHeight - innerHeight)).toBeLessThan(200);
  });

  it("renders what comes into view, as it was before", async () => {
    await messages().evaluate((box) => (box.scrollTop = box.scrollHeight / 2));
    const shown = () =>
      messages().evaluate((box) => {
        const { top, bottom } = box.getBoundingClientRect();
        const inView = [...box.querySelectorAll(".place")].filter((place) => {
          const at = place.getBoundingClientRect();
          return at.bottom > top && at.top < bottom;
        });
        return inView.length > 0 && inView.every((place) => place.querySelector("article") !== null);
      });
    await expect.poll(shown).toBe(true);
    await expect.poll(elements).toBeLessThan(MOST_ELEMENTS);
  });

  it("the browser's search finds the words of a message that is far away, which is then rendered", async () => {
    await messages().evaluate((box) => (box.scrollTop = box.scrollHeight));
    await expect.poll(() => isInView(MESSAGES)).toBe(true);
    const found = await page().evaluate((words) => {
      getSelection()!.removeAllRanges();
      const isFound = (globalThis as unknown as { find(text: string): boolean }).find(words);
      // As the browser does with what its search has found.
      getSelection()!.anchorNode?.parentElement?.scrollIntoView({ block: "center" });
      return isFound;
    }, text(24));
    expect(found).toBe(true);
    await expect.poll(() => isInView(24)).toBe(true);
    await messages()
      .getByRole("article")
      .filter({ hasText: text(24) })
      .first()
      .waitFor();
  });

  it("what the user has opened stays open when it is far away", async () => {
    const article = messages()
      .getByRole("article")
      .filter({ hasText: text(24) })
      .first();
    await article.getByRole("button", { name: "Thought" }).click();
    await article.getByText("Let me see").waitFor();
    await page().getByRole("button", { name: "Latest message" }).click();
    await expect.poll(() => isInView(MESSAGES)).toBe(true);
    await expect.poll(elements).toBeLessThan(MOST_ELEMENTS);
    expect(await article.getByText("Let me see").count()).toBe(1);
  });

  it("the text stays under the reader's eyes while its surroundings are rendered", async () => {
    await messages().evaluate((box) => (box.scrollTop = box.scrollHeight / 3));
    const topOf = (sequence: number) =>
      messages()
        .getByText(text(sequence))
        .first()
        .evaluate((element) => element.getBoundingClientRect().top);
    let read = 2;
    while (!(await isInView(read))) read += 2;
    await messages()
      .getByRole("article")
      .filter({ hasText: text(read) })
      .first()
      .waitFor();
    const before = await topOf(read);
    await messages().evaluate((box) => (box.scrollTop -= 150));
    await expect.poll(async () => Math.abs((await topOf(read)) - before - 150)).toBeLessThan(40);
  });
});
