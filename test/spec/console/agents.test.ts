import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";

/** One empty page. */
const SMALL_PDF = `%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]>>endobj
trailer<</Root 1 0 R>>`;

describe.skipIf(findChromium() === undefined)("agents in the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      files: {
        "agents/helper/agent.json": {
          name: "Helper",
          description: "Helps with everything",
          tools: ["SendUserMessage"],
          skills: ["skills/one", "skills/two"],
        },
        "agents/broken/agent.json": "{",
        "agents/bare/notes.txt": "No agent.json here",
      },
      context: { permissions: ["clipboard-read", "clipboard-write"] },
    });
    execFileSync("git", ["init", "-q", join(opened.service.cwd, "agents/helper")]);
    await opened.goTo("Agents");
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const page = () => opened.page;
  const messages = () => page().getByRole("region", { name: "Messages" });
  const input = () => page().getByLabel("Message to Helper");
  const list = () => page().getByRole("complementary", { name: "Conversations" }).getByRole("listitem");

  async function goToHelper(): Promise<void> {
    await page().evaluate(() => (location.hash = "#/agents/helper"));
    await page().getByRole("heading", { name: "New conversation" }).waitFor();
  }
  async function say(words: string): Promise<void> {
    await input().fill(words);
    await input().press("Enter");
  }
  async function sayAndWait(words: string, answer: string): Promise<void> {
    await say(words);
    await messages().getByText(answer).waitFor();
  }

  it("are listed with their state, and what is wrong with one is told plainly", async () => {
    const row = (name: string) => page().getByRole("table", { name: "Agents" }).getByRole("row").filter({ hasText: name });
    await row("Helper").getByText("local only").waitFor();
    expect(await row("Helper").locator("td").allTextContents()).toEqual([
      expect.stringContaining("Idle"),
      "loop",
      "1",
      "0",
      "local only",
    ]);
    expect(await row("broken").textContent()).toContain("Its agent.json is not JSON");
    expect(await row("bare").textContent()).toContain("Its folder has no agent.json");
    expect(await row("bare").textContent()).toContain("Error");
    expect(await findingsInEveryLook(page())).toEqual([]);
  });

  it("an agent that is not there says so", async () => {
    await page().evaluate(() => (location.hash = "#/agents/nobody"));
    await page().getByText("This agent does not exist").waitFor();
  });

  it("Enter sends, Shift and Enter breaks the line; the conversation gets an address, and goes on over several turns", async () => {
    await goToHelper();
    await input().fill("First line");
    await input().press("Shift+Enter");
    await input().pressSequentially("second line");
    await input().press("Enter");
    await messages().getByText("You said: First line second line").waitFor();
    await expect.poll(() => page().url()).toMatch(/#\/agents\/helper\/\w+/);
    const { conversations } = await opened.call("GET", "/api/conversations");
    const { messages: kept } = await opened.call("GET", `/api/conversations/${conversations[0].conversationId}/messages`);
    expect(kept[0].parts).toEqual([{ type: "text", text: "First line\nsecond line" }]);
    await sayAndWait("And again", "You said: And again");
    expect((await opened.call("GET", "/api/runs")).runs).toHaveLength(1);
    expect(await list().count()).toBe(1);
  });

  it("shows a tool's call with its arguments, its result and its state, and what it carried to the user", async () => {
    await sayAndWait("Call SendUserMessage", "The tool answered");
    await messages().getByText("Message to you").waitFor();
    const call = page().getByRole("button", { name: "SendUserMessage" });
    expect(await call.textContent()).toContain("Done");
    expect(await call.getAttribute("aria-expanded")).toBe("false");
    await call.click();
    const args = await page().getByRole("group", { name: "arguments of SendUserMessage" }).textContent();
    expect(JSON.parse(args!)).toEqual({ text: "Call SendUserMessage" });
    await page().getByRole("group", { name: "result of SendUserMessage" }).waitFor();
    expect(await findingsInEveryLook(page())).toEqual([]);
  });

  it("renders Markdown as elements, HTML as the text that it is, and code with a button that copies it", async () => {
    await say(
      "x\n\n# Title\n\n- *one* &amp; **two**\n\n<img src=x onerror=alert(1)>\n\n[bad](javascript:alert(1)) [good](https://example.org/)\n\n```js\nlet a = 1;\n```",
    );
    const answer = messages().getByRole("article").last().locator(".agent");
    await answer.getByRole("heading", { name: "Title" }).waitFor();
    expect(await answer.getByRole("listitem").textContent()).toBe("one & two");
    expect(await answer.locator("img").count()).toBe(0);
    expect(await answer.textContent()).toContain("<img src=x onerror=alert(1)>");
    expect(await answer.getByRole("link").evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).href))).toEqual([
      "https://example.org/",
    ]);
    await answer.getByRole("button", { name: "Copy js code" }).click();
    expect(await page().evaluate(() => navigator.clipboard.readText())).toContain("let a = 1;");
  });

  it("files are dropped and chosen, uploaded with progress, sent, and shown in the conversation", async () => {
    await goToHelper();
    let release!: () => void;
    const held = new Promise<void>((resolve) => (release = resolve));
    await page().route("**/api/media/upload", async (route) => {
      await held;
      await route.continue();
    });
    const dropped = await page().evaluateHandle(async () => {
      const picture = await new OffscreenCanvas(40, 20).getContext("2d")!.canvas.convertToBlob();
      const transfer = new DataTransfer();
      transfer.items.add(new File([picture], "chart.png", { type: "image/png" }));
      return transfer;
    });
    await page().dispatchEvent("body", "dragenter", { dataTransfer: dropped });
    await page().getByText("Drop files to send them to Helper").waitFor();
    await page().dispatchEvent("body", "drop", { dataTransfer: dropped });
    await page().getByRole("progressbar", { name: "Upload of chart.png" }).waitFor();
    await input().fill("Look at these");
    expect(await page().getByRole("button", { name: "Send" }).isDisabled()).toBe(true);
    await page()
      .locator("input[type=file]")
      .setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("Notes") });
    release();
    await expect.poll(() => page().getByRole("progressbar").count()).toBe(0);
    await page().getByRole("button", { name: "Send" }).click();
    await messages().getByText("You said: Look at these").waitFor();
    const sent = messages().getByRole("list", { name: "Files" });
    await expect
      .poll(() => sent.getByRole("img", { name: "chart.png" }).evaluate((img: HTMLImageElement) => img.naturalWidth))
      .toBe(40);
    expect(await sent.textContent()).toContain("notes.txt");
    await page().unroute("**/api/media/upload");
  });

  it("a picture is opened large, a text is shown, and every other file is saved", async () => {
    const paper = { name: "paper.zip", mimeType: "application/zip", buffer: Buffer.from("PK") };
    const table = { name: "table.csv", mimeType: "application/octet-stream", buffer: Buffer.from("a,b\n1,<i>2</i>") };
    await page().locator("input[type=file]").setInputFiles([paper, table]);
    await page().getByRole("button", { name: "Remove table.csv" }).waitFor();
    await expect.poll(() => page().getByRole("progressbar").count()).toBe(0);
    await sayAndWait("Two more", "You said: Two more");
    const dialog = page().getByRole("dialog");
    await messages().getByRole("button", { name: "Open chart.png" }).click();
    const large = dialog.getByRole("img", { name: "chart.png" });
    await expect.poll(() => large.evaluate((img: HTMLImageElement) => img.naturalWidth)).toBe(40);
    expect(await findingsInEveryLook(page())).toEqual([]);
    const [saved] = await Promise.all([page().waitForEvent("download"), dialog.getByRole("link", { name: "Download" }).click()]);
    expect(saved.suggestedFilename()).toBe("chart.png");
    await page().keyboard.press("Escape");
    await messages()
      .getByRole("button", { name: /^Open table\.csv/ })
      .click();
    expect(await dialog.getByRole("group", { name: "text of the file" }).textContent()).toBe("a,b\n1,<i>2</i>");
    expect(await findingsInEveryLook(page())).toEqual([]);
    await page().keyboard.press("Escape");
    const [kept] = await Promise.all([
      page().waitForEvent("download"),
      messages()
        .getByRole("button", { name: /^Download paper\.zip/ })
        .click(),
    ]);
    expect(kept.suggestedFilename()).toBe("paper.zip");
    expect(await dialog.count()).toBe(0);
  });

  it("a PDF opens in the browser's viewer in a new tab that cannot reach the console, never as a page with scripts, and is saved without a tab", async () => {
    const script = "<!doctype html><script>document.title = 'ran'; opener.document.title = 'reached'</script>";
    const pdf = (name: string, text: string) => ({ name, mimeType: "application/pdf", buffer: Buffer.from(text) });
    await page()
      .locator("input[type=file]")
      .setInputFiles([pdf("real.pdf", SMALL_PDF), { ...pdf("script.pdf", script), mimeType: "text/html" }]);
    await page().getByRole("button", { name: "Remove script.pdf" }).waitFor();
    await expect.poll(() => page().getByRole("progressbar").count()).toBe(0);
    await sayAndWait("Two PDFs", "You said: Two PDFs");
    const file = (name: string) => messages().getByRole("button", { name: `Open ${name}` });
    for (const name of ["real.pdf", "script.pdf"]) {
      const [tab] = await Promise.all([page().context().waitForEvent("page"), file(name).click()]);
      await expect.poll(() => tab.url()).toMatch(/^blob:/);
      // The viewer is another site than the console.
      await expect.poll(() => tab.frames().some((frame) => frame.url().startsWith("chrome-extension:"))).toBe(true);
      expect(await tab.evaluate(() => [opener, document.title, document.contentType])).toEqual([null, "", "application/pdf"]);
      await tab.close();
    }
    expect(await page().title()).not.toBe("reached");
    await page().evaluate(() => void (window.open = () => null));
    const [saved] = await Promise.all([page().waitForEvent("download"), file("real.pdf").click()]);
    expect(saved.suggestedFilename()).toBe("real.pdf");
  });

  it("formulas are MathML, money and invalid formulas are text, and the library comes with the first formula", async () => {
    const library = page().waitForRequest(/draw-math/);
    await sayAndWait("Costs $5 and $6.", "You said: Costs $5 and $6.");
    const answer = messages().getByRole("article").last().locator(".agent");
    expect(await answer.locator("math").count()).toBe(0);
    await say(
      "so $x^2$, \\(y\\) and $\\frac{1$\n\n$$\n\\sum_{i=1}^n \\href{javascript:alert(1)}{i}\n$$\n\n\\[ \\label{page-title} z \\]",
    );
    await library;
    await expect.poll(() => answer.locator("math").count()).toBe(3);
    expect(await answer.locator("math").first().textContent()).toBe("x2");
    expect(await answer.locator("code").allTextContents()).toEqual([
      "$\\frac{1$",
      "$$\n\\sum_{i=1}^n \\href{javascript:alert(1)}{i}\n$$",
    ]);
    expect(await answer.locator("[id],[href]").count()).toBe(0);
    expect(await findingsInEveryLook(page())).toEqual([]);
  });

  it("what the service does not take says why, and goes away when it is removed", async () => {
    await page()
      .locator("input[type=file]")
      .setInputFiles({ name: "empty.txt", mimeType: "text/plain", buffer: Buffer.alloc(0) });
    await page().getByRole("alert").filter({ hasText: "Attachment empty" }).waitFor();
    await page().getByRole("button", { name: "Remove empty.txt" }).click();
    expect(await page().getByRole("list", { name: "Files to be sent" }).count()).toBe(0);
  });

  it("an earlier conversation is opened with its messages; links that are too old are renewed", async () => {
    let links = 0;
    await page().route("**/api/media/access-urls", async (route) => {
      const response = await route.fetch();
      // As it is five minutes later: the service refuses it.
      if (links++ === 0) await route.fulfill({ response, body: (await response.text()).replace(/expires=\d/, "expires=0") });
      else await route.fulfill({ response });
    });
    const address = page().url();
    await page().reload();
    await opened.signIn();
    await page().evaluate((url) => (location.href = url), address);
    await messages().getByText("You said: Look at these").waitFor();
    await expect
      .poll(async () => {
        // Images far from view are not loaded.
        await messages().evaluate((box) => (box.scrollTop = 0));
        return messages()
          .getByRole("img", { name: "chart.png" })
          .evaluate((img: HTMLImageElement) => img.naturalWidth);
      })
      .toBe(40);
    expect(links).toBe(2);
    await list().filter({ hasText: "First line" }).getByRole("link").click();
    await messages().getByText("You said: And again").waitFor();
    await page().getByRole("button", { name: "SendUserMessage" }).waitFor();
    await sayAndWait("After a while", "You said: After a while");
    expect((await opened.call("GET", "/api/runs")).runs).toHaveLength(2);
  });

  it("a long conversation has its earlier messages on demand, and stays where it is read", async () => {
    const { conversations } = await opened.call("GET", "/api/conversations");
    const [{ conversationId }] = conversations;
    await page().route(/conversations\/.*\/messages/, async (route) => {
      const url = new URL(route.request().url());
      const before = Number(url.searchParams.get("before") ?? 121);
      const first = Math.max(before - 50, 1);
      const of = (sequence: number) => ({
        sequence,
        id: `m${sequence}`,
        role: sequence % 2 === 1 ? "user" : "assistant",
        parts: [{ type: "text", text: `Message ${sequence}` }],
        at: "2030-01-01T00:00:00.000Z",
      });
      const found = Array.from({ length: before - first }, (_, index) => of(first + index));
      await route.fulfill({
        json: { conversationId, branch: 1, messages: found, branches: [], skipped: 0, ...(first > 1 && { before: first }) },
      });
    });
    await page().reload();
    await opened.signIn();
    await page().evaluate((id) => (location.hash = `#/agents/helper/${id}`), conversationId as string);
    await messages().getByText("Message 120", { exact: true }).waitFor();
    await messages().evaluate((box) => (box.scrollTop = 0));
    // Near the view, a message is drawn anew.
    const first = messages().locator("[data-place]:not([data-far])").getByText("Message 71", { exact: true });
    await first.waitFor();
    const top = () => first.evaluate((element) => element.getBoundingClientRect().top);
    const stood = await top();
    await page().getByRole("button", { name: "Earlier messages" }).click();
    await messages().getByText("Message 21", { exact: true }).waitFor();
    await expect.poll(async () => Math.abs((await top()) - stood)).toBeLessThan(80);
    await page().unroute(/conversations\/.*\/messages/);
  });

  it("is cleared when that was confirmed, and not when it was not", async () => {
    const before = (await opened.call("GET", "/api/runs")).runs.length;
    await page().getByRole("button", { name: "Clear" }).click();
    await page().getByRole("alertdialog").getByRole("button", { name: "Cancel" }).click();
    expect((await opened.call("GET", "/api/runs")).runs).toHaveLength(before);
    await page().getByRole("button", { name: "Clear" }).click();
    await page().getByRole("alertdialog").getByRole("button", { name: "Clear" }).click();
    await page().getByRole("heading", { name: "New conversation" }).waitFor();
    await expect.poll(() => list().count()).toBe(before - 1);
    expect((await opened.call("GET", "/api/runs")).runs).toHaveLength(before - 1);
  });
});
