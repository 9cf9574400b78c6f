/**
 * What ten jobs cost a person in the web console: `npm run bench:console`, about a minute. It counts clicks (also on fields that are filled
 * in), and the seconds until the answer is seen, which are those of the machine and of no person. `-- --heap` also tells the memory of scripts after
 * ten minutes, and with 500 messages, in 15 minutes. Needs Chromium.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { connectAgent } from "@portico/client";
import { findChromium, type Locator, type Page, startChromium } from "../browser/chromium.ts";
import { DESKTOP, openConsole, PHONE } from "../browser/console.ts";

const DECISIONS = 16;
const MESSAGES = 500;
const SERVICE = "service-token-0123456789abcdef0123456789";
const files = {
  "agents/helper/agent.json": { name: "Helper" },
  "agents/broken/agent.json": { name: "Broken", provider: "missing", model: "none" },
  "workflows/ask.json": { name: "Ask", nodes: { ask: { type: "human_gate", with: { title: "Go on?" } } } },
  "workflows/greet.json": {
    name: "Greet",
    parameters: { type: "object", properties: { who: { type: "string" } }, required: ["who"] },
    nodes: { hello: { type: "transform", with: { value: "Good morning, ${{ parameters.who }}" } } },
  },
  "workflows/nightly.json": {
    name: "Nightly",
    schedules: [{ name: "often", every: "1s" }],
    nodes: { read: { type: "transform", with: { value: "${{ parameters.missing.field }}" } } },
  },
};

/** A person with a mouse and a keyboard. */
class Person {
  clicks = 0;
  readonly page: Page;
  constructor(page: Page) {
    this.page = page;
  }
  async click(what: Locator): Promise<void> {
    this.clicks++;
    await what.click();
  }
  async press(name: string | RegExp, around: Page | Locator = this.page): Promise<void> {
    await this.click(around.getByRole("button", { name, exact: typeof name === "string" }).first());
  }
  async follow(name: string | RegExp, around: Page | Locator = this.page): Promise<void> {
    await this.click(around.getByRole("link", { name, exact: typeof name === "string" }).first());
  }
  async goTo(title: string): Promise<void> {
    await this.follow(title, this.page.getByRole("navigation", { name: "Pages" }));
  }
  async fill(label: string, text: string, around: Page | Locator = this.page): Promise<void> {
    this.clicks++;
    await around.getByLabel(label, { exact: true }).first().fill(text);
  }
}

interface Job {
  readonly name: string;
  run(person: Person): Promise<unknown>;
}

const jobs: readonly Job[] = [
  {
    name: "See which agent cost most last week",
    run: async (person) => {
      await person.follow("by agent");
      await person.page
        .getByRole("table", { name: /^Usage by agent/ })
        .or(person.page.getByText("No usage in this time"))
        .waitFor();
    },
  },
  {
    name: "See what failed since yesterday, and open the newest of a cause",
    run: async (person) => {
      const failures = person.page.getByRole("table", { name: "Failures by cause" });
      await person.click(failures.getByRole("row").filter({ hasText: "Broken" }).getByRole("link").nth(1));
      await person.page.getByText("provider is not configured").first().waitFor();
    },
  },
  {
    name: `Decide ${DECISIONS} gates one by one, on a phone`,
    run: async (person) => {
      await person.page.setViewportSize(PHONE);
      await person.page.evaluate(() => (location.hash = "#/approvals"));
      for (let left = DECISIONS; left > 0; left--) {
        await person.click(person.page.locator("button[data-key]").first());
        await person.press(/^Approve/);
        await person.page.waitForFunction((count) => document.querySelectorAll("button[data-key]").length < count, left);
      }
      await person.page.getByText("No decision waits").waitFor();
    },
  },
  {
    name: "Find the schedule that fails, and the reason",
    run: async (person) => {
      await person.goTo("Schedules");
      await person.click(
        person.page
          .getByRole("row")
          .filter({ hasText: "nightly" })
          .getByText(/^Failed/)
          .first(),
      );
      await person.page.getByText("parameters.missing").first().waitFor();
    },
  },
  {
    name: "See why a webhook event was refused",
    run: async (person) => {
      await person.goTo("Webhooks");
      await person.follow(/Helper|helper/, person.page.getByRole("main"));
      await person.page.getByText("wrong secret").first().waitFor();
    },
  },
  {
    name: "Send a failed message again",
    run: async (person) => {
      await person.goTo("Agents");
      await person.follow("Broken", person.page.getByRole("main"));
      await person.click(
        person.page
          .getByRole("main")
          .getByRole("link", { name: /Summarize/ })
          .first(),
      );
      await person.press("Send again");
      await person.page.getByText("2 / 2").waitFor();
    },
  },
  {
    name: "Start a workflow, and read its result",
    run: async (person) => {
      await person.goTo("Workflows");
      await person.follow("Greet", person.page.getByRole("main"));
      await person.press("Start");
      const dialog = person.page.getByRole("dialog");
      await person.fill("who", "Ada", dialog);
      await person.press("Start", dialog);
      await person.click(person.page.getByRole("treeitem", { name: /^hello/ }));
      await person.page.getByText("Good morning, Ada").first().waitFor();
    },
  },
  {
    name: "Talk with an agent",
    run: async (person) => {
      await person.goTo("Agents");
      await person.follow("Helper", person.page.getByRole("main"));
      await person.fill("Message to Helper", "Good morning");
      await person.press("Send");
      await person.page.getByRole("button", { name: "Regenerate answer" }).waitFor();
    },
  },
  {
    name: "See who issued a token, and when",
    run: async (person) => {
      await person.goTo("Audit");
      await person.page.getByRole("main").getByText("safe-token.issue").first().waitFor();
    },
  },
  {
    name: "Revoke all safe tokens",
    run: async (person) => {
      await person.goTo("Providers");
      await person.press("Revoke all");
      await person.press("Revoke all", person.page.getByRole("dialog").or(person.page.getByRole("alertdialog")));
      await person.page.getByText("No tokens yet").first().waitFor();
    },
  },
];

const path = findChromium();
if (path === undefined) throw new Error("No Chromium is found: PORTICO_TEST_CHROMIUM names one");
const browser = await startChromium(path);
try {
  await using opened = await openConsole({
    browser,
    files,
    config: { workflow: { token: SERVICE, definitionsDir: "workflows" } },
  });
  const { page, service, token, call } = opened;
  await using client = connectAgent({ baseURL: service.url("agent"), token });
  await client.submit({ agentId: "helper", prompt: "Hello" }).ended;
  await client.submit({ agentId: "broken", prompt: "Summarize the week" }).ended;
  await call("POST", "/api/safe-tokens", { providerId: "demo", label: "tester" });
  await call("PUT", "/api/agents/helper/webhooks/events/deploy", { promptTemplate: "Look at {{id}}", toolIds: [] });
  await fetch(`${service.url("agent")}/api/webhook/helper`, {
    method: "POST",
    headers: { authorization: "Bearer wrong", "content-type": "application/json" },
    body: JSON.stringify({ event: "deploy", payload: { id: 1 } }),
  });
  const headers = { "x-workflow-service-token": SERVICE, "content-type": "application/json" };
  for (let at = 0; at < DECISIONS; at++)
    await fetch(`${service.url("workflow")}/api/workflow/webhook?id=ask`, { method: "POST", headers, body: "{}" });

  /** What scripts keep, after a garbage collection. */
  const heap = async (): Promise<string> => {
    const inspector = await page.context().newCDPSession(page);
    await inspector.send("HeapProfiler.collectGarbage");
    const { usedSize } = await inspector.send("Runtime.getHeapUsage");
    await inspector.detach();
    return `${(usedSize / 2 ** 20).toFixed(1)} MiB`;
  };
  const tellHeap = async (): Promise<void> => {
    console.log(`heap after the jobs: ${await heap()}`);
    await page.waitForTimeout(10 * 60_000);
    console.log(`heap after ten minutes on the overview: ${await heap()}`);
    const conversationId = randomUUID();
    for (let at = 0; at < MESSAGES / 2; at++)
      await client.submit({ agentId: "helper", prompt: `Message ${at}`, conversationId }).ended;
    await page.evaluate((id) => (location.hash = `#/agents/helper/${id}`), conversationId);
    const earlier = page.getByRole("button", { name: "Earlier messages" });
    await page
      .getByText(`Message ${MESSAGES / 2 - 1}`)
      .first()
      .waitFor();
    while ((await earlier.count()) > 0) {
      await earlier.click().catch(() => {});
      await page.waitForTimeout(300);
    }
    await page.getByText("Message 0", { exact: true }).first().waitFor();
    console.log(`heap with a conversation of ${MESSAGES} messages: ${await heap()}`);
  };

  console.log("job | clicks | seconds");
  for (const job of jobs) {
    await page.setViewportSize(DESKTOP);
    await page.evaluate(() => (location.hash = "#/"));
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    const person = new Person(page);
    page.setDefaultTimeout(20_000);
    const begun = performance.now();
    const isDone = await job.run(person).then(
      () => true,
      (error: unknown) => (console.error(error), false),
    );
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    console.log(`${job.name} | ${isDone ? person.clicks : "not possible"} | ${isDone ? seconds : ""}`);
  }
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  if (process.argv.includes("--heap")) await tellHeap();
  console.log(`elements on the overview: ${nodes}; first view: ${firstView()} KiB of scripts and styles`);
} finally {
  await browser.close();
}

/** Compressed, as it is loaded before the overview is seen. */
function firstView(): string {
  const built = join(import.meta.dirname, "../../console/page");
  type Chunk = { readonly file: string; readonly imports?: readonly string[]; readonly css?: readonly string[] };
  const chunks = JSON.parse(readFileSync(join(built, "manifest.json"), "utf8")) as Record<string, Chunk>;
  const seen = new Set<string>();
  const add = (key: string): void => {
    const { file, imports = [], css = [] } = chunks[key]!;
    if (seen.has(file)) return;
    for (const each of [file, ...css]) seen.add(each);
    imports.forEach(add);
  };
  ["index.html", "src/pages/Overview.svelte"].forEach(add);
  const bytes = [...seen].reduce((sum, file) => sum + gzipSync(readFileSync(join(built, file))).byteLength, 0);
  return (bytes / 1024).toFixed(1);
}
