import { connectAgent } from "@portico/client";
import type { Locator, Page, Request, WebSocketRoute } from "../../browser/chromium.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { answerEvents } from "../../harness/answer-events.ts";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole, withFakeModel } from "../../browser/console.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { createGate } from "../../harness/gate.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { events, json } from "../../harness/upstream-answers.ts";

describe.skipIf(findChromium() === undefined)("turns of an agent in the web console", () => {
  const browser = useChromium();
  let upstream: FakeUpstream;
  let opened: OpenConsole;
  const sockets: WebSocketRoute[] = [];
  beforeAll(async () => {
    upstream = await startFakeUpstream({ models: ["large"] });
    upstream.answerAll(events(messagesEvents("well answered")));
    opened = await openConsole({
      browser: browser(),
      files: { "agents/helper/agent.json": { name: "Helper" } },
      ...withFakeModel(upstream),
    });
    await page().routeWebSocket(/socket\.io/, (socket) => {
      socket.connectToServer();
      sockets.push(socket);
    });
  });
  afterAll(async () => {
    await opened[Symbol.asyncDispose]();
    await upstream.close();
  });
  beforeEach(async () => {
    await page().evaluate(() => (location.hash = "#/agents/helper"));
    await page().getByRole("heading", { name: "New conversation" }).waitFor();
  });
  afterEach(() => page().unrouteAll({ behavior: "wait" }));

  const page = (): Page => opened.page;
  const messages = () => page().getByRole("region", { name: "Messages" });
  const input = () => page().getByLabel("Message to Helper");
  const stop = () => page().getByRole("button", { name: "Stop" });

  /** The next answer of the model: its first words now, and the others when the gate opens. */
  function answerInTwoParts(first: string, second: string, thinking?: string) {
    const gate = createGate();
    const all = messagesEvents(`${first} ${second}`, thinking);
    const held = all.findIndex((event) => event.includes(second.split(" ")[0]!));
    upstream.answerNext(events([...all.slice(0, held), gate.opened, ...all.slice(held)]));
    return gate;
  }
  async function say(words: string): Promise<void> {
    await input().fill(words);
    await input().press("Enter");
  }
  const kept = async (words: string) => {
    const { runs } = await opened.call("GET", "/api/runs");
    return runs.filter(({ title }: { title: string }) => title === words).length;
  };

  it("say why they ended where they did not simply stop (open points 13)", async () => {
    upstream.answerNext(events(answerEvents("messages", { text: "as far as it went", stop: "max_tokens" })));
    await say("Tell me everything");
    await messages().getByText("as far as it went").waitFor();
    await messages().getByText("Its last answer was truncated at a token limit.").waitFor();
    const { runs } = await opened.call("GET", "/api/runs");
    await page().evaluate((id) => (location.hash = `#/runs/${id}`), runs[0].run_id);
    const turn = page().getByRole("article");
    await turn.getByText("Partial").waitFor();
    await turn.getByText("Its last answer was truncated at a token limit.").waitFor();
  });

  it("stream what is thought, closed until it is opened, and what is said, word by word", async () => {
    const gate = answerInTwoParts("one two", "three four", "let me see");
    await say("Count");
    await messages().getByText("one two").waitFor();
    expect(await messages().textContent()).not.toContain("three");
    const thought = page().getByRole("button", { name: "Thought" });
    expect(await messages().textContent()).not.toContain("let me see");
    await thought.click();
    await messages().getByText("let me see").waitFor();
    gate.open();
    await messages().getByText("one two three four").waitFor();
    await expect.poll(() => stop().count()).toBe(0);
  });

  it("of another client appear word by word while they go on, and can be stopped", async () => {
    await using other = connectAgent({ baseURL: opened.service.url("agent"), token: opened.token });
    const first = other.submit({ agentId: "helper", prompt: "From elsewhere" });
    await first.ended;
    const { sessionId, conversationId } = (await first.started)!;
    await page().evaluate((id) => (location.hash = `#/agents/helper/${id}`), conversationId);
    await messages().getByText("well answered").waitFor();
    const gate = answerInTwoParts("still", "working");
    const second = other.submit({ agentId: "helper", sessionId, prompt: "More from elsewhere" });
    await messages().getByText("More from elsewhere", { exact: true }).waitFor();
    await messages().getByText("still", { exact: true }).waitFor();
    await messages().getByText("This turn was started elsewhere.").waitFor();
    expect(await findingsInEveryLook(page())).toEqual([]);
    gate.open();
    await messages().getByText("still working").waitFor();
    await second.ended;
    await expect.poll(() => messages().getByText("This turn was started elsewhere.").count()).toBe(0);
    expect(await messages().getByText("still working").count()).toBe(1);
    const endless = answerInTwoParts("will", "be stopped");
    const third = other.submit({ agentId: "helper", sessionId, prompt: "And more" });
    await messages().getByText("will", { exact: true }).waitFor();
    await stop().click();
    expect(await third.ended).toMatchObject({ status: "interrupted" });
    await expect.poll(() => stop().count()).toBe(0);
    endless.open();
  });

  it("are stopped with Escape: what was said stays, and the next turn goes on", async () => {
    answerInTwoParts("so far", "and more");
    await say("Talk");
    await messages().getByText("so far").waitFor();
    await stop().waitFor();
    await input().press("Escape");
    await messages().getByText("Stopped", { exact: true }).waitFor();
    expect(await messages().textContent()).toContain("so far");
    upstream.answerNext(events(messagesEvents("I go on")));
    await say("Go on");
    await messages().getByText("I go on").waitFor();
    // The mark is behind the last words, also when the conversation is opened again.
    const answers = messages().getByRole("article").locator(".agent");
    const isMarked = async () => /so far\s*Stopped$/.test((await answers.first().textContent())!.trim());
    await expect.poll(isMarked).toBe(true);
    const address = page().url();
    await page().reload();
    await opened.signIn();
    await page().evaluate((url) => (location.href = url), address);
    await messages().getByText("I go on").waitFor();
    await expect.poll(isMarked).toBe(true);
    expect(await messages().getByText("Stopped", { exact: true }).count()).toBe(1);
  });

  it("may be submitted while another executes, and wait for it", async () => {
    const gate = answerInTwoParts("the first", "answer");
    await say("First");
    await messages().getByText("the first").waitFor();
    await say("Second");
    await messages().getByText("Waiting for its turn").waitFor();
    upstream.answerNext(events(messagesEvents("the second answer")));
    gate.open();
    await messages().getByText("the second answer").waitFor();
  });

  it("continue while the user looks at another page", async () => {
    const gate = answerInTwoParts("said while", "nobody looked at it");
    await say("Look away");
    await messages().getByText("said while").waitFor();
    const address = page().url();
    await opened.goTo("Providers");
    await page().evaluate((url) => (location.href = url), address);
    await messages().getByText("said while").waitFor();
    await stop().waitFor();
    gate.open();
    await messages().getByText("said while nobody looked at it").waitFor();
  });

  it("are announced to a screen reader when they begin and end, and not word by word", async () => {
    const words = (from: number) => Array.from({ length: 20 }, (_, index) => `word${from + index}`).join(" ");
    const gate = answerInTwoParts(words(0), words(20));
    await page().evaluate(() => {
      const told: string[] = [];
      Object.assign(globalThis, { told });
      const region = document.querySelector("section[aria-label=Conversation] > .spoken")!;
      new MutationObserver(() => told.push(region.textContent!.trim())).observe(region, {
        childList: true,
        characterData: true,
        subtree: true,
      });
    });
    await say("Read to me");
    await messages().getByText("word0").waitFor();
    gate.open();
    await messages().getByText("word39").waitFor();
    const told = () => page().evaluate(() => (globalThis as unknown as { told: string[] }).told);
    await expect.poll(async () => (await told()).at(-1)).toMatch(/^Helper answered: word0/);
    expect((await told()).filter((text) => /word/.test(text))).toHaveLength(1);
    expect((await told()).length).toBeLessThan(6);
  });

  it("keep the reader's place: the end is followed until the reader scrolls up", async () => {
    const lines = (from: number) => Array.from({ length: 60 }, (_, index) => `line${from + index}\n\n`).join("");
    const gate = answerInTwoParts(lines(0), lines(60).trim());
    await say("A long one");
    await messages().getByText("line59", { exact: true }).waitFor();
    const fromEnd = () => messages().evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
    await expect.poll(fromEnd).toBeLessThan(50);
    await messages().evaluate((box) => (box.scrollTop = 100));
    await page().getByRole("button", { name: "Latest message" }).waitFor();
    gate.open();
    await messages().getByText("line119", { exact: true }).waitFor({ state: "attached" });
    expect(await messages().evaluate((box) => box.scrollTop)).toBe(100);
    await page().getByRole("button", { name: "Latest message" }).click();
    await expect.poll(fromEnd).toBeLessThan(50);
  });

  it("are followed to the end where they grow again before the page was told that it has scrolled", async () => {
    upstream.answerNext(events(messagesEvents("short")));
    await say("Grow");
    await messages().getByText("short").waitFor();
    const fromEnd = () => messages().evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
    // Each time the page has scrolled to what came, more comes before its scroll event, as pictures do that load.
    await messages().evaluate(
      (box) =>
        new Promise<void>((resolve) => {
          const content = box.firstElementChild!;
          let count = 0;
          const grow = () => {
            if (++count > 5) return (watch.disconnect(), resolve());
            content.append(Object.assign(document.createElement("div"), { className: "filler", style: "height: 2000px" }));
          };
          const watch = new ResizeObserver(() => setTimeout(grow));
          watch.observe(content);
        }),
    );
    await expect.poll(fromEnd).toBeLessThan(50);
    await messages().evaluate((box) => {
      for (const filler of box.querySelectorAll(".filler")) filler.remove();
    });
  });

  it("show the user's own picture at once, also if the chat was scrolled up", async () => {
    upstream.answerNext(events(messagesEvents(Array.from({ length: 80 }, (_, index) => `row${index}\n\n`).join(""))));
    await say("A long one, once more");
    await messages().getByText("row79", { exact: true }).waitFor();
    await expect.poll(() => stop().count()).toBe(0);
    await messages().evaluate((box) => (box.scrollTop = 100));
    await page().getByRole("button", { name: "Latest message" }).waitFor();
    const picture = { name: "tall.png", mimeType: "image/png", buffer: await tallPicture() };
    await page().locator("input[type=file]").setInputFiles(picture);
    await expect.poll(() => page().getByRole("button", { name: "Send" }).isEnabled()).toBe(true);
    await input().press("Enter");
    const shown = messages().getByRole("img", { name: "tall.png" });
    await expect.poll(() => shown.evaluate((image: HTMLImageElement) => image.complete && image.naturalHeight > 0)).toBe(true);
    await messages().getByText("well answered").last().waitFor();
    await expect.poll(() => messages().evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight)).toBeLessThan(50);
  });

  /** A picture that is higher than what counts as near the end. */
  const tallPicture = async (): Promise<Buffer> => {
    const url = await page().evaluate(() => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 20, height: 400 });
      return canvas.toDataURL("image/png");
    });
    return Buffer.from(url.split(",")[1]!, "base64");
  };

  it("written from right to left are shown so, block by block", async () => {
    const hebrew = "שלום עולם";
    upstream.answerNext(
      events(messagesEvents(`${hebrew}, Portico\n\n- ${hebrew}\n\nleft to right\n\n\`\`\`\n${hebrew}\n\`\`\``)),
    );
    await input().fill(`${hebrew}?`);
    const direction = (element: Locator) => element.evaluate((each) => getComputedStyle(each).direction);
    expect(await direction(input())).toBe("rtl");
    await input().press("Enter");
    const answer = messages().locator(".agent").last();
    await answer.getByText("left to right").waitFor();
    expect(await direction(messages().locator(".prompt").last())).toBe("rtl");
    expect(await direction(answer.getByText(`${hebrew}, Portico`))).toBe("rtl");
    expect(await direction(answer.getByRole("list"))).toBe("rtl");
    expect(await direction(answer.getByRole("listitem"))).toBe("rtl");
    expect(await direction(answer.getByText("left to right"))).toBe("ltr");
    expect(await direction(answer.locator("pre code"))).toBe("ltr");
    await expect.poll(() => stop().count()).toBe(0);
    expect(await direction(page().getByRole("heading", { level: 2, name: hebrew }))).toBe("rtl");
    expect(await direction(page().locator("bdi, [dir=auto]").getByText(hebrew).first())).toBe("rtl");
  });

  it("a failed turn says why, also after a reload", async () => {
    upstream.answerAll(json(400, { type: "error", error: { type: "invalid_request_error", message: "No such thing" } }));
    await say("Fail");
    await page().getByRole("alert").filter({ hasText: "The turn failed" }).waitFor();
    upstream.answerAll(json(400, { type: "error", error: { type: "invalid_request_error", message: "Nor that" } }));
    await say("Fail again");
    await expect.poll(() => page().getByRole("alert").filter({ hasText: "The turn failed" }).count()).toBe(2);
    const address = page().url();
    await page().reload();
    await opened.signIn();
    await page().evaluate((url) => (location.href = url), address);
    for (const reason of [/The turn failed: .*No such thing/, /The turn failed: .*Nor that/])
      await messages().getByText(reason).waitFor();
    upstream.answerAll(events(messagesEvents("well answered")));
  });

  it("a broken connection is shown, and missed text arrives afterwards", async () => {
    const gate = answerInTwoParts("said before", "it broke and after that");
    await say("Break");
    await messages().getByText("said before").waitFor();
    await page().route(/socket\.io/, (route) => route.abort());
    for (const socket of sockets.splice(0)) await socket.close({ code: 1011 });
    await page().getByText("The connection was lost. Reconnecting").waitFor();
    gate.open();
    await page().unrouteAll({ behavior: "wait" });
    await messages().getByText("said before it broke and after that").waitFor();
    await expect.poll(() => page().getByText("The connection was lost").count()).toBe(0);
  });

  describe("a submission whose answer was lost", () => {
    const starts = /\/api\/query\/start$/;
    const lookups = /\/client-requests\/lookup$/;

    it("that had arrived: the lookup's answer is shown, and it is not sent again", async () => {
      const gate = answerInTwoParts("this takes", "quite some time");
      await say("In the way");
      await messages().getByText("this takes").waitFor();
      let posts = 0;
      await page().route(/\/api\/query\/follow-up$/, async (route) => {
        posts++;
        await route.fetch();
        await route.abort();
      });
      await say("Lost on the way back");
      await messages().getByText("reserved", { exact: true }).waitFor();
      gate.open();
      await messages().getByText("well answered").waitFor();
      await messages().getByText("It was not sent again").waitFor();
      expect(posts).toBe(1);
    });

    it("that had not arrived: it is sent again with the same IDs, and that is shown", async () => {
      const sent: Request[] = [];
      await page().route(starts, async (route) => {
        sent.push(route.request());
        if (sent.length === 1) await route.abort();
        else await route.continue();
      });
      await say("Lost on the way there");
      await messages().getByText("well answered").waitFor();
      await messages().getByText("The message did not arrive").waitFor();
      await messages().getByText("absent", { exact: true }).waitFor();
      const [first, second] = sent.map((request) => request.postDataJSON());
      expect(second.clientRequestId).toBe(first.clientRequestId);
      expect(await kept("Lost on the way there")).toBe(1);
    });

    it("whose result is unknown: nothing is sent automatically, and a person can ask again and send it again", async () => {
      let posts = 0;
      await page().route(starts, (route) => (posts++, route.abort()));
      await page().route(lookups, async (route) => {
        const answer = await (await route.fetch()).json();
        await route.fulfill({
          json: { ...answer, results: answer.results.map((each: object) => ({ ...each, status: "unknown" })) },
        });
      });
      await say("Nobody knows");
      await page().getByRole("alert").filter({ hasText: "It is not known whether this message arrived" }).waitFor();
      await messages().getByText("unknown", { exact: true }).waitFor();
      expect(posts).toBe(1);
      expect(await findingsInEveryLook(page())).toEqual([]);
      await page().unrouteAll({ behavior: "wait" });
      await page().getByRole("button", { name: "Ask the service again" }).click();
      await messages().getByText("absent", { exact: true }).waitFor();
      expect(await kept("Nobody knows")).toBe(0);
      await page().getByRole("button", { name: "Send again, with the same IDs" }).click();
      await messages().getByText("well answered").waitFor();
      expect(await kept("Nobody knows")).toBe(1);
    });
  });

  it("a submission that is refused says why, and its words can be taken back", async () => {
    await page().route(/\/api\/query\/start$/, (route) => route.fulfill({ status: 400, json: { error: "unknown_agent" } }));
    await say("Refused words");
    await page().getByRole("alert").filter({ hasText: "Not accepted" }).waitFor();
    await page().getByRole("button", { name: "Edit", exact: true }).click();
    expect(await input().inputValue()).toBe("Refused words");
    expect(await messages().getByRole("article").count()).toBe(0);
    await input().fill("");
  });
});
