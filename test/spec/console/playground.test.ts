import { Buffer } from "node:buffer";
import { execFile, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole, PHONE } from "../../browser/console.ts";
import { type FakeUpstream, startFakeUpstream } from "../../harness/fake-upstream.ts";
import { createGate } from "../../harness/gate.ts";
import { temporaryFolder } from "../../harness/portico-process.ts";
import { messagesEvents } from "../../harness/stream-scripts.ts";
import { CUT, events, json } from "../../harness/upstream-answers.ts";
import type { Answer } from "../../harness/upstream-exchange.ts";
import { root } from "../../rooms/repository.ts";

const run = promisify(execFile);
const hasPython = spawnSync("python3", ["-c", ""]).status === 0;
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PNG = { name: "pixel.png", mimeType: "image/png", buffer: Buffer.from(PIXEL, "base64") };
const KEY = "sk-provider-key-0123456789abcdef";

describe.skipIf(findChromium() === undefined)("the playground of the web console", () => {
  const browser = useChromium();
  let upstream: FakeUpstream;
  let opened: OpenConsole;
  beforeAll(async () => {
    upstream = await startFakeUpstream();
    const provider = { baseUrl: upstream.baseUrl, credential: KEY, models: ["echo-large", "echo-small"] };
    opened = await openConsole({
      browser: browser(),
      config: {
        providers: [
          { ...provider, id: "main", protocol: "messages" },
          { ...provider, id: "second", protocol: "chat-completions" },
          { ...provider, id: "strict", protocol: "chat-completions", dialect: { reasoningContent: false } },
          // Nothing listens at port 1: its upstream cannot be asked for models.
          { ...provider, id: "away", protocol: "messages", baseUrl: "http://127.0.0.1:1/v1", models: "discover" },
        ],
        prices: {
          currency: "EUR",
          models: [{ model: "echo-large", from: "2020-01-01", input: 300_000, output: 2_000_000, cachedInput: 100_000 }],
        },
      },
      context: { permissions: ["clipboard-read", "clipboard-write"] },
    });
  });
  beforeEach(async () => {
    upstream.reset();
    await opened.page.evaluate(() => (location.hash = ""));
    await opened.page.reload();
    await opened.signIn();
    await opened.goTo("Overview");
    await opened.goTo("Playground");
    await provider().waitFor();
  });
  afterEach(() => opened.page.setViewportSize({ width: 1280, height: 860 }));
  afterAll(async () => {
    await opened?.[Symbol.asyncDispose]();
    await upstream?.close();
  });

  const provider = () => opened.page.getByLabel("Provider");
  const message = (number: number) => opened.page.getByLabel(`Text of message ${number}`);
  const button = (name: string) => opened.page.getByRole("button", { name, exact: true });
  const status = (text: string) => opened.page.getByRole("status").getByText(text, { exact: true });
  const code = (name: string) => opened.page.getByRole("group", { name: `${name} code` });
  const lastBody = async () => (await upstream.requests.at(-1)!.json()) as Record<string, any>;
  async function send(text: string, number: number, ending = "Completed") {
    await message(number).fill(text);
    await button("Send").click();
    await status(ending).waitFor();
  }
  async function figures(): Promise<Record<string, string>> {
    const rows = opened.page.getByLabel("Figures of the answer").last().locator("div");
    return Object.fromEntries(
      await rows.evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent))),
    );
  }
  async function copied(language: string) {
    await opened.page.getByRole("tab", { name: language }).click();
    await button(`Copy ${language} code`).click();
    return opened.page.evaluate(() => navigator.clipboard.readText());
  }

  it("is opened from the list of providers, with the provider that was chosen there", async () => {
    const { page } = opened;
    await opened.goTo("Providers");
    await page.getByRole("link", { name: "Try it with second" }).click();
    await expect.poll(() => provider().inputValue()).toBe("second");
    expect(await page.getByLabel("Protocol").inputValue()).toBe("chat-completions");
  });

  describe.each(["main", "second"])("with the provider %s", (id) => {
    it.each([
      ["messages", "max_tokens"],
      ["chat-completions", "max_completion_tokens"],
    ])("calls in %s and streams the answer", async (protocol, limit) => {
      const { page } = opened;
      await provider().selectOption(id);
      await page.getByLabel("Protocol").selectOption(protocol);
      expect(await code("curl").textContent()).toContain(`"${limit}": 1024`);
      await send("say it back", 1);
      expect((await message(2).textContent())?.trim()).toBe("echo: say it back");
      expect(upstream.requests.at(-1)!.url).toBe(id === "main" ? "/v1/messages" : "/v1/chat/completions");
      expect(await lastBody()).toMatchObject({ model: "echo-large", stream: true });
    });

    it.each(["messages", "chat-completions"])("calls in %s without a stream", async (protocol) => {
      const { page } = opened;
      await provider().selectOption(id);
      await page.getByLabel("Protocol").selectOption(protocol);
      await page.getByRole("switch", { name: "Stream the answer" }).click();
      await send("say it back", 1);
      expect((await message(2).textContent())?.trim()).toBe("echo: say it back");
      expect((await lastBody()).stream).not.toBe(true);
      expect(await figures()).toMatchObject({ "Tokens in": "3", "Tokens out": "4" });
    });

    it.each(["messages", "chat-completions"])(
      "in %s, shows calls of tools, and sends the results that are typed",
      async (protocol) => {
        const { page } = opened;
        await provider().selectOption(id);
        await page.getByLabel("Protocol").selectOption(protocol);
        await button("Insert an example").click();
        await page.getByRole("textbox", { name: "Tools" }).waitFor();
        await send('call get_weather{"city":"Ulm"}', 1);
        await expect
          .poll(() => page.getByRole("group", { name: "arguments of get_weather" }).textContent())
          .toContain('"city": "Ulm"');
        expect(await button("Send").isDisabled()).toBe(true);
        await page.getByLabel("Result of get_weather").fill("sunny");
        await button("Send").click();
        await expect.poll(async () => (await message(3).textContent())?.trim()).toBe("tool result: sunny");
        const { messages, tools } = await lastBody();
        const call = { city: "Ulm" };
        if (id === "main") {
          expect(tools).toMatchObject([{ name: "get_weather", input_schema: { required: ["city"] } }]);
          expect(messages.slice(-2)).toMatchObject([
            { role: "assistant", content: [{ type: "tool_use", name: "get_weather", input: call }] },
            { role: "user", content: [{ type: "tool_result", tool_use_id: messages.at(-2).content[0].id }] },
          ]);
        } else {
          expect(tools).toMatchObject([
            { type: "function", function: { name: "get_weather", parameters: { required: ["city"] } } },
          ]);
          const [{ tool_calls: calls }, result] = messages.slice(-2);
          expect(JSON.parse(calls[0].function.arguments)).toEqual(call);
          expect(result).toMatchObject({ role: "tool", tool_call_id: calls[0].id, content: "sunny" });
        }
      },
    );
  });

  it("sends several messages of both roles, which can be changed and removed, with the system text and the settings", async () => {
    const { page } = opened;
    await page.getByLabel("System (optional)").fill("Be brief.");
    await page.getByLabel("Temperature").fill("0.5");
    await page.getByLabel("Max tokens").fill("77");
    await send("one", 1);
    await button("Edit the text of message 2").click();
    await message(2).fill("the answer is **one**");
    await button("Show the text of message 2").click();
    expect(await message(2).locator("strong").textContent()).toBe("one");
    await send("two", 3);
    await button("Assistant message").click();
    await button("User message").click();
    await page.getByRole("button", { name: "Remove message 4" }).click();
    await page.getByRole("button", { name: "Remove message 4" }).click();
    await message(4).fill("seen");
    await send("three", 5);
    expect(await lastBody()).toEqual({
      ...{ model: "echo-large", system: "Be brief.", temperature: 0.5, max_tokens: 77, stream: true },
      messages: [
        { role: "user", content: "one" },
        { role: "assistant", content: "the answer is **one**" },
        { role: "user", content: "two" },
        { role: "assistant", content: "seen" },
        { role: "user", content: "three" },
      ],
    });
  });

  it("shows the answer word by word, and Stop cancels the call and keeps what has arrived", async () => {
    const { page } = opened;
    const gate = createGate();
    const [start, ...rest] = messagesEvents("first second");
    const at = rest.findIndex((event) => event.includes("second"));
    upstream.answerNext(events([start!, ...rest.slice(0, at), gate.opened, ...rest.slice(at)]));
    await message(1).fill("go on");
    await button("Send").click();
    const answer = page.getByRole("log", { name: "Answer" });
    await expect.poll(async () => (await answer.textContent())?.trim()).toBe("first");
    await button("Stop").click();
    await status("Stopped").waitFor();
    expect((await message(2).textContent())?.trim()).toBe("first");
    expect(await upstream.requests.at(-1)!.outcome).toBe("aborted");
    gate.open();
    expect(await figures()).toMatchObject({ Answer: "Stopped", "First token": expect.stringMatching(/ s$/) });
  });

  it("shows thoughts, and sends them back with the signature of the provider", async () => {
    const { page } = opened;
    upstream.answerNext(events(messagesEvents("the answer", "a deep thought")));
    await send("think", 1);
    await page.getByRole("button", { name: "Thought" }).click();
    await page.getByText("a deep thought").waitFor();
    await send("again", 3);
    expect((await lastBody()).messages[1]).toEqual({
      role: "assistant",
      content: [
        { type: "thinking", thinking: "a deep thought", signature: "c2lnbmVk" },
        { type: "text", text: "the answer" },
      ],
    });
  });

  it("sends thoughts without a signature back to a provider of Chat Completions that accepts them, and to no other", async () => {
    const { page } = opened;
    const thinking = () =>
      json(200, { choices: [{ message: { role: "assistant", content: "the answer", reasoning_content: "a plain thought" } }] });
    for (const [id, reasoning] of [
      ["second", "a plain thought"],
      ["strict", undefined],
    ] as const) {
      await provider().selectOption(id);
      await page.getByLabel("Protocol").selectOption("chat-completions");
      if (id === "second") await page.getByRole("switch", { name: "Stream the answer" }).click();
      else await button("Clear").click();
      upstream.answerNext(thinking());
      await send("think", 1);
      await send("again", 3);
      expect((await lastBody()).messages[1]).toEqual({
        ...{ role: "assistant", content: "the answer" },
        ...(reasoning !== undefined && { reasoning_content: reasoning }),
      });
    }
  });

  it.each([
    ["main", "messages"],
    ["second", "chat-completions"],
  ])("tells the provider %s that a tool failed", async (id, protocol) => {
    const { page } = opened;
    await provider().selectOption(id);
    await page.getByLabel("Protocol").selectOption(protocol);
    await button("Insert an example").click();
    await page.getByRole("textbox", { name: "Tools" }).waitFor();
    await send('call get_weather{"city":"Ulm"}', 1);
    await page.getByLabel("Result of get_weather").fill("no such city");
    await page.getByRole("checkbox", { name: "get_weather failed" }).check();
    await button("Send").click();
    await message(3).waitFor();
    const last = (await lastBody()).messages.at(-1);
    if (protocol === "messages") expect(last.content[0]).toMatchObject({ content: "no such city", is_error: true });
    else expect(last).toMatchObject({ role: "tool", content: "[tool error] no such city" });
  });

  it("adds further fields to the request, and says what is wrong with them", async () => {
    const { page } = opened;
    const fields = page.getByLabel("Further fields (optional)");
    await message(1).fill("hello");
    for (const [text, problem] of [
      ["{", "Invalid JSON"],
      ["[1]", "Write a JSON object"],
      ['{ "model": "other", "stream": false }', "Set on this page: model, stream"],
    ] as const) {
      await fields.fill(text);
      await page.getByRole("alert").getByText(problem).waitFor();
      expect(await button("Send").isDisabled()).toBe(true);
    }
    await fields.fill('{ "top_p": 0.5, "thinking": { "type": "enabled", "budget_tokens": 1024 }, "max_tokens": 4096 }');
    await send("hello", 1);
    expect(await lastBody()).toMatchObject({
      ...{ model: "echo-large", top_p: 0.5, max_tokens: 4096 },
      thinking: { type: "enabled", budget_tokens: 1024 },
    });
    expect(await code("curl").textContent()).toContain('"top_p": 0.5');
  });

  it("shows tokens, the cost as usage counts it, the stop reason and times", async () => {
    const since = new Date().toISOString();
    const usage = { input_tokens: 2, cache_read_input_tokens: 3, output_tokens: 4 };
    const content = [{ type: "text", text: "cached" }];
    await opened.page.getByRole("switch", { name: "Stream the answer" }).click();
    const before = await opened.call("GET", `/api/usage?by=model&model=echo-large&since=${since}`);
    const whole = { id: "msg_1", type: "message", role: "assistant", model: "echo-large", content, stop_reason: "end_turn" };
    upstream.answerNext(json(200, { ...whole, stop_sequence: null, usage }));
    await send("how much", 1);
    // 2 at 0.30, 3 of the cache at 0.10, and 4 at 2.00.
    expect(await figures()).toEqual({
      "Total time": expect.stringMatching(/^\d+\.\d\d s$/),
      ...{ "Tokens in": "5 (3 from the cache)", "Tokens out": "4", Cost: "8.90 EUR", "Stop reason": "end_turn" },
    });
    const costOf = (answer: any) => answer.groups[0]?.cost ?? 0;
    const counted = async () =>
      costOf(await opened.call("GET", `/api/usage?by=model&model=echo-large&since=${since}`)) - costOf(before);
    await expect.poll(counted).toBeCloseTo(8.9);
  });

  it("says if a model has no price", async () => {
    await opened.page.getByLabel("Model", { exact: true }).selectOption("echo-small");
    await send("hello", 1);
    expect(await figures()).toMatchObject({ Cost: "No price is set" });
  });

  it("shows errors in the words of the proxy and of the provider, and keeps the message", async () => {
    const { page } = opened;
    const problem = async () => (await page.getByRole("alert").allTextContents()).map((text) => text.trim());
    upstream.answerNext(json(429, { type: "error", error: { type: "rate_limit_error", message: "Slow down, please" } }));
    await send("hello", 1, "Failed");
    expect(await problem()).toEqual(["Slow down, please (status 429)"]);
    expect(await message(1).inputValue()).toBe("hello");
    await page.getByLabel("Model", { exact: true }).selectOption("Another model…");
    await page.getByLabel("Name of the model").fill("unknown-model");
    await button("Send").click();
    await expect.poll(problem).toEqual([expect.stringContaining("unknown-model")]);
    await page.getByLabel("Model", { exact: true }).selectOption("echo-large");
    upstream.answerNext(events([...messagesEvents("half of it").slice(0, 5), CUT]));
    await button("Send").click();
    await status("Failed").waitFor();
    await expect.poll(() => message(2).textContent()).toContain("half");
    expect(await problem()).toHaveLength(1);
  });

  it("takes the name of a model if the provider does not list its models", async () => {
    const { page } = opened;
    await provider().selectOption("away");
    await page.getByText("The provider does not list its models now.").waitFor();
    await message(1).fill("hello");
    await page.getByText("First name a model.").waitFor();
    await page.getByLabel("Model", { exact: true }).fill("typed");
    expect(await code("curl").textContent()).toContain('"model": "typed"');
    await button("Send").click();
    await status("Failed").waitFor();
    expect(await page.getByRole("alert").textContent()).toContain("away");
  });

  describe("images", () => {
    const images = (number: number) =>
      opened.page.getByRole("list", { name: `Images of message ${number}` }).getByRole("listitem");

    it("are chosen, dropped and pasted, shown, removed, and sent in the shape of the protocol", async () => {
      const { page } = opened;
      await page.locator("input[type=file]").setInputFiles(PNG);
      await expect.poll(() => images(1).count()).toBe(1);
      for (const kind of ["drop", "paste"] as const) await message(1).evaluate(giveFile, { kind, base64: PIXEL });
      await expect.poll(() => images(1).count()).toBe(3);
      const shown = () =>
        images(1)
          .locator("img")
          .evaluateAll((all) => all.map((image) => (image as HTMLImageElement).naturalWidth));
      await expect.poll(shown).toEqual([1, 1, 1]);
      await page.getByRole("button", { name: "Remove drop.png" }).click();
      await send("what is it", 1);
      const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PIXEL } };
      const text = { type: "text", text: "what is it" };
      expect((await lastBody()).messages).toEqual([{ role: "user", content: [image, image, text] }]);
      await provider().selectOption("second");
      await page.getByLabel("Protocol").selectOption("chat-completions");
      await send("and now", 3);
      const url = { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } };
      expect((await lastBody()).messages[0]).toEqual({ role: "user", content: [url, url, text] });
    });

    it("are not taken if they are too large or of another type", async () => {
      const { page } = opened;
      const large = { ...PNG, name: "large.png", buffer: Buffer.alloc(5_000_001) };
      await page.locator("input[type=file]").setInputFiles([large, { ...PNG, name: "a.svg", mimeType: "image/svg+xml" }]);
      await page.getByText("large.png is larger than 5 MB").waitFor();
      await page.getByText("a.svg is not a PNG, JPEG, GIF or WebP image").waitFor();
      expect(await images(1).count()).toBe(0);
    });
  });

  it("says what is wrong with the tools, and writes them in the shape of the other protocol", async () => {
    const { page } = opened;
    await button("Insert an example").click();
    const editor = page.getByRole("textbox", { name: "Tools" });
    await editor.waitFor();
    await message(1).fill("hello");
    await page.getByLabel("Protocol").selectOption("chat-completions");
    await expect.poll(() => editor.textContent()).toContain('"parameters"');
    const write = async (text: string) => {
      await editor.focus();
      await page.keyboard.press("ControlOrMeta+a");
      await page.keyboard.insertText(text);
    };
    await write('[{ "name": "no_function" }]');
    await page.getByText(/^Tool 1 is not an object with "type": "function"/).waitFor();
    expect(await button("Send").isDisabled()).toBe(true);
    await write("[{");
    await page.getByText("Invalid JSON.").waitFor();
    await button("Remove the tools").click();
    await expect.poll(() => button("Send").isDisabled()).toBe(false);
  });

  describe("the request as code", () => {
    /** A conversation with everything. */
    async function converse(protocol: string) {
      const { page } = opened;
      await provider().selectOption(protocol === "messages" ? "main" : "second");
      await page.getByLabel("Protocol").selectOption(protocol);
      await page.getByLabel("System (optional)").fill(`It's "brief" $HOME \`x\`\nand \\n 'true'`);
      await page.getByLabel("Temperature").fill("0.25");
      await button("Insert an example").click();
      await page.locator("input[type=file]").setInputFiles(PNG);
      await send("call get_weather", 1);
      await page.getByLabel("Result of get_weather").fill("sunny ☀");
    }
    const token = async () =>
      (await opened.call("POST", "/api/safe-tokens", { providerId: await provider().inputValue() })).token as string;

    it.each(["messages", "chat-completions"])("curl and TypeScript make the very call of the page, in %s", async (protocol) => {
      const { page } = opened;
      await converse(protocol);
      for (const isStream of [true, false]) {
        const [curl, typescript] = [await copied("curl"), await copied("TypeScript")];
        await button("Send").click();
        await status("Completed").waitFor();
        await expect.poll(async () => (await message(3).textContent())?.trim()).toBe("tool result: sunny ☀");
        const ofPage = upstream.requests.at(-1)!;
        const SAFE_TOKEN = await token();
        const env = { ...process.env, SAFE_TOKEN };
        const ofCurl = await run("bash", ["-c", curl.replace("curl ", "curl -sSf ")], { env });
        expect(await lastBody()).toEqual(await ofPage.json());
        const eval_ = ["--input-type=module-typescript", "--eval", typescript];
        const ofTypescript = await run(process.execPath, eval_, { env, cwd: join(root, "test") });
        expect(await lastBody()).toEqual(await ofPage.json());
        expect(upstream.requests.at(-1)!.url).toBe(ofPage.url);
        for (const { stdout } of [ofCurl, ofTypescript]) expect(stdout).toContain("sunny");
        expect(upstream.requests.length).toBe(isStream ? 4 : 7);
        if (!isStream) break;
        for (const number of [4, 3]) await page.getByRole("button", { name: `Remove message ${number}` }).click();
        await page.getByRole("switch", { name: "Stream the answer" }).click();
      }
    });

    it.skipIf(!hasPython)("Python makes the very call of the page, in both protocols", async () => {
      using folder = new StandInLibraries();
      for (const protocol of ["messages", "chat-completions"]) {
        await opened.goTo("Overview");
        await opened.goTo("Playground");
        if (protocol !== "messages") {
          await button("Clear").click();
          await button("Remove the tools").click();
        }
        await converse(protocol);
        const python = await copied("Python");
        await button("Send").click();
        await status("Completed").waitFor();
        await expect.poll(async () => (await message(3).textContent())?.trim()).toBe("tool result: sunny ☀");
        const env = { ...process.env, PYTHONPATH: folder.path, SAFE_TOKEN: "of-the-environment", PYTHONUTF8: "1" };
        const { stdout } = await run("python3", ["-c", python], { env });
        const address = opened.service.url("proxy").replace(protocol === "messages" ? /\/v1$/ : /$^/, "");
        expect(JSON.parse(stdout)).toEqual([address, "of-the-environment", await lastBody()]);
      }
    });

    it("is of the last answered call until the user writes on, and contains no token", async () => {
      const { page } = opened;
      await send("hello", 1);
      const [{ token: own }] = [await page.evaluate(() => ({ token: document.documentElement.outerHTML }))];
      expect(own).not.toMatch(/service_[\w-]{43}/);
      expect(await code("curl").textContent()).not.toContain("echo:");
      await message(3).fill("more");
      await expect.poll(() => code("curl").textContent()).toContain("echo: hello");
      expect(await copied("curl")).toContain("$SAFE_TOKEN");
    });

    it("shortens images where it is shown", async () => {
      await opened.page.locator("input[type=file]").setInputFiles(PNG);
      await expect.poll(() => code("curl").textContent()).toContain("… (70 bytes)");
      expect(await code("curl").textContent()).not.toContain(PIXEL);
      expect(await copied("curl")).toContain(PIXEL);
    });
  });

  describe("with a second model", () => {
    const LARGE = "main: echo-large";
    const SMALL = "main: echo-small";
    const answer = (number: number, by: string) => opened.page.getByLabel(`Text of message ${number} by ${by}`);
    const heading = (name: string) => opened.page.getByRole("heading", { level: 3, name: new RegExp(`^${name}`) });
    /** Each model answers with its name, after what it waits for. */
    const nameItself = (before: Readonly<Record<string, Answer>> = {}): Answer => {
      return async (exchange) => {
        const { model } = (await exchange.request.json()) as { model: string };
        await (before[model] ?? events(messagesEvents(`answer of ${model}`)))(exchange);
      };
    };
    const bodiesSince = async (count: number) => {
      const bodies = await Promise.all(upstream.requests.slice(count).map(async (request) => (await request.json()) as any));
      return Object.fromEntries(bodies.map((body) => [body.model, body]));
    };
    beforeEach(async () => {
      await opened.page.getByRole("switch", { name: "Compare with a second model" }).click();
      await opened.page.getByLabel("Model (second)").waitFor();
    });
    afterEach(() => opened.page.evaluate(() => (location.hash = "#/playground?provider=main")));

    it("sends each message to both models, shows the answers beside each other with their figures, and sends back to each its own", async () => {
      const { page } = opened;
      upstream.answerAll(nameItself());
      await send("who are you", 1);
      for (const by of [LARGE, SMALL])
        expect((await answer(2, by).textContent())?.trim()).toBe(`answer of ${by.slice("main: ".length)}`);
      const shown = await page.getByLabel("Figures of the answer").allTextContents();
      expect(shown).toHaveLength(2);
      for (const text of shown) expect(text).toMatch(/First token.*Total time.*Tokens in.*Tokens out/s);
      const [large, small] = [(await heading(LARGE).boundingBox())!, (await heading(SMALL).boundingBox())!];
      expect([small.y, small.x > large.x + large.width]).toEqual([large.y, true]);
      await send("and again", 3);
      const bodies = await bodiesSince(2);
      for (const model of ["echo-large", "echo-small"]) {
        const own = { role: "assistant", content: `answer of ${model}` };
        expect(bodies[model].messages.slice(1)).toEqual([own, { role: "user", content: "and again" }]);
      }
    });

    it("shows the error of a model at its answer, and asks the failed model alone again if no other message is written", async () => {
      upstream.answerAll(nameItself({ "echo-small": json(429, { type: "error", error: { message: "Slow down, please" } }) }));
      await send("hello", 1, "Failed");
      await answer(2, LARGE).waitFor();
      const told = opened.page.getByRole("alert");
      expect((await told.allTextContents()).map((text) => text.trim())).toEqual(["Slow down, please (status 429)"]);
      expect((await told.boundingBox())!.x).toBeGreaterThan((await heading(LARGE).boundingBox())!.x + 100);
      upstream.answerAll(nameItself());
      await button("Send").click();
      await status("Completed").waitFor();
      expect(await bodiesSince(2)).toMatchObject({ "echo-small": { messages: [{ role: "user", content: "hello" }] } });
      expect(upstream.requests).toHaveLength(3);
      expect((await answer(3, SMALL).textContent())?.trim()).toBe("answer of echo-small");
    });

    it("keeps the message if both models fail, and sends it again in place of the failed answers", async () => {
      upstream.answerAll(json(429, { type: "error", error: { message: "Slow down, please" } }));
      await send("hello", 1, "Failed");
      expect(await opened.page.getByRole("alert").count()).toBe(2);
      upstream.answerAll(nameItself());
      await button("Send").click();
      await status("Completed").waitFor();
      for (const by of [LARGE, SMALL]) await answer(2, by).waitFor();
      expect(await opened.page.getByRole("alert").count()).toBe(0);
    });

    it("stops both answers at once, and keeps what has arrived", async () => {
      const { page } = opened;
      const gate = createGate();
      const cut = (model: string) => {
        const all = messagesEvents(`${model} goes-on`);
        const at = all.findIndex((event) => event.includes("goes-on"));
        return events([...all.slice(0, at), gate.opened, ...all.slice(at)]);
      };
      upstream.answerAll(nameItself({ "echo-large": cut("large"), "echo-small": cut("small") }));
      await message(1).fill("go on");
      await button("Send").click();
      for (const [by, text] of [
        [LARGE, "large"],
        [SMALL, "small"],
      ] as const)
        await expect.poll(() => page.getByRole("log", { name: `Answer of ${by}` }).textContent()).toContain(text);
      await button("Stop").click();
      await status("Stopped").waitFor();
      for (const request of upstream.requests) expect(await request.outcome).toBe("aborted");
      gate.open();
      expect((await answer(2, LARGE).textContent())?.trim()).toBe("large");
      expect((await answer(2, SMALL).textContent())?.trim()).toBe("small");
    });

    it("has the second model in its address", async () => {
      const { page } = opened;
      await page.getByLabel("Provider (second)").selectOption("second");
      expect(new URL(page.url()).hash).toContain("secondProvider=second&secondModel=echo-large");
      await opened.goTo("Overview");
      await page.evaluate(() => (location.hash = "#/playground?provider=main&secondProvider=second&secondModel=echo-small"));
      await expect.poll(() => page.getByLabel("Model (second)").inputValue()).toBe("echo-small");
    });

    it("has no serious finding of axe, and shows the answers below each other on a phone", async () => {
      const { page } = opened;
      upstream.answerAll(nameItself());
      await send("who are you", 1);
      expect(await findingsInEveryLook(page)).toEqual([]);
      await page.setViewportSize(PHONE);
      const [large, small] = [(await heading(LARGE).boundingBox())!, (await heading(SMALL).boundingBox())!];
      expect([small.x, small.y > large.y + large.height]).toEqual([large.x, true]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(PHONE.width);
    });
  });

  it("opens the editor of a new agent with the provider, the model and the system text", async () => {
    const { page } = opened;
    await provider().selectOption("second");
    await page.getByLabel("Model", { exact: true }).selectOption("echo-small");
    await page.getByLabel("System (optional)").fill("Be brief.");
    await button("Save as agent").click();
    await page.getByRole("dialog").getByLabel("ID").fill("of-playground");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "New agent of-playground" }).waitFor();
    await expect.poll(() => page.getByLabel("Instructions (optional)").inputValue()).toBe("Be brief.");
    await button("Create").click();
    await page.getByRole("dialog").getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    const {
      name,
      provider: id,
      model,
      instructions,
    } = JSON.parse(readFileSync(join(opened.service.cwd, "agents/of-playground/agent.json"), "utf8"));
    expect([name, id, model, instructions]).toEqual(["of-playground", "second", "echo-small", "Be brief."]);
    await opened.goTo("Playground");
    await button("Save as agent").click();
    await page.getByRole("dialog").getByLabel("ID").fill("of-playground");
    await page.keyboard.press("Enter");
    await page.getByText("There is an agent with this ID already.").waitFor();
    await page.keyboard.press("Escape");
  });

  it("has the provider, the model and the protocol in its address, and nothing of the conversation", async () => {
    const { page } = opened;
    await provider().selectOption("second");
    await page.getByLabel("Model", { exact: true }).selectOption("echo-small");
    await page.getByLabel("Protocol").selectOption("messages");
    await send("a secret text", 1);
    expect(new URL(page.url()).hash).toBe("#/playground?provider=second&model=echo-small&protocol=messages");
    const stored = await page.evaluate(() => JSON.stringify([localStorage, sessionStorage]));
    expect(stored).not.toContain("a secret text");
    await opened.goTo("Overview");
    await page.evaluate(() => (location.hash = "#/playground?provider=second&model=typed&protocol=chat-completions"));
    await expect.poll(() => page.getByLabel("Name of the model").inputValue()).toBe("typed");
    expect(await page.getByLabel("Protocol").inputValue()).toBe("chat-completions");
  });

  it("keeps the conversation while another page is shown, until the session ends", async () => {
    const { page } = opened;
    await provider().selectOption("second");
    await send("remember me", 1);
    await opened.goTo("Overview");
    await opened.goTo("Playground");
    await expect.poll(() => provider().inputValue()).toBe("second");
    expect(await message(1).inputValue()).toBe("remember me");
    await page.getByRole("button", { name: "Sign out" }).click();
    await opened.signIn();
    await opened.goTo("Playground");
    expect(await message(1).inputValue()).toBe("");
  });

  it("issues one safe token for each provider, issues another if it was revoked, and revokes them at the end of the session", async () => {
    const own = async () => {
      const { safeTokens } = await opened.call("GET", "/api/safe-tokens");
      return safeTokens.filter(({ label }: { label?: string }) => label === "web console").length;
    };
    await opened.call("DELETE", "/api/safe-tokens");
    await send("one", 1);
    await send("two", 3);
    expect(await own()).toBe(1);
    await opened.call("DELETE", "/api/safe-tokens");
    await send("three", 5, "Failed");
    await button("Send").click();
    await status("Completed").waitFor();
    expect(await own()).toBe(1);
    await opened.page.getByRole("button", { name: "Sign out" }).click();
    await expect.poll(own).toBe(0);
    await opened.signIn();
  });

  it("works with the keyboard: Ctrl+Enter sends, and the next message has the focus after the answer", async () => {
    const { page } = opened;
    await message(1).focus();
    await page.keyboard.type("by hand");
    await page.keyboard.press("Control+Enter");
    await status("Completed").waitFor();
    expect((await message(2).textContent())?.trim()).toBe("echo: by hand");
    await expect.poll(() => message(3).evaluate((element) => element === document.activeElement)).toBe(true);
    await page.keyboard.type("again");
    await page.keyboard.press("Control+Enter");
    await expect.poll(async () => (await message(4).textContent())?.trim()).toBe("echo: again");
    expect(upstream.requests.length).toBe(2);
  });

  it("has no serious finding of axe and fits on a phone, with images, tools, thoughts and figures", async () => {
    const { page } = opened;
    await page.locator("input[type=file]").setInputFiles(PNG);
    await button("Insert an example").click();
    await page.getByRole("textbox", { name: "Tools" }).waitFor();
    await send("call get_weather", 1);
    expect(await findingsInEveryLook(page)).toEqual([]);
    upstream.answerNext(json(500, { type: "error", error: { type: "api_error", message: "Broken" } }));
    await page.getByLabel("Result of get_weather").fill("sunny");
    await button("Send").click();
    await status("Failed").waitFor();
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("works on a phone", async () => {
    const { page } = opened;
    await page.setViewportSize(PHONE);
    await send("from a phone", 1);
    expect((await message(2).textContent())?.trim()).toBe("echo: from a phone");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(PHONE.width);
  });
});

/** Modules in place of the client libraries of Python. They print the address, the key and the arguments of the call. */
class StandInLibraries implements Disposable {
  readonly #folder = temporaryFolder();
  readonly path = join(this.#folder.path, "modules");

  constructor() {
    mkdirSync(this.path);
    const library = (name: string, path: string) => `
import json
from types import SimpleNamespace

class ${name}:
    def __init__(self, *, base_url, api_key):
        def create(**given):
            print(json.dumps([base_url, api_key, given]))
            return []
        self.${path.split(".")[0]} = SimpleNamespace(create=create, completions=SimpleNamespace(create=create))
`;
    writeFileSync(join(this.path, "anthropic.py"), library("Anthropic", "messages"));
    writeFileSync(join(this.path, "openai.py"), library("OpenAI", "chat.completions"));
  }

  [Symbol.dispose](): void {
    this.#folder.remove();
  }
}

/** Runs in the page. */
function giveFile(element: Element, { kind, base64 }: { readonly kind: "drop" | "paste"; readonly base64: string }): void {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const data = new DataTransfer();
  data.items.add(new File([bytes], `${kind}.png`, { type: "image/png" }));
  const given = { bubbles: true, cancelable: true };
  element.dispatchEvent(
    kind === "drop"
      ? new DragEvent("drop", { ...given, dataTransfer: data })
      : new ClipboardEvent("paste", { ...given, clipboardData: data }),
  );
}
