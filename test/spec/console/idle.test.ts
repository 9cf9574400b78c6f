import { connectAgent } from "@portico/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { type OpenConsole, openConsole } from "../../browser/console.ts";

const SERVICE = "service-token-0123456789abcdef0123456789";
const GATES = 15;
/** Requests of an idle page in a minute. */
const MOST = 4;
const ask = "{ name: Ask, nodes: { ask: { type: human_gate, with: { title: Go on? } } } }";

describe.skipIf(findChromium() === undefined)("an idle page of the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  let ids: { readonly runId: string; readonly workflowRun: string; readonly conversationId: string };
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      mayIdle: true,
      files: { "agents/helper/agent.json": { name: "Helper" }, "workflows/ask.yaml": ask },
      config: { workflow: { token: SERVICE, definitionsDir: "workflows" } },
    });
    const url = `${opened.service.url("workflow")}/api/workflow/webhook?id=ask`;
    const headers = { "x-workflow-service-token": SERVICE, "content-type": "application/json" };
    const started: string[] = [];
    for (let count = 0; count < GATES; count++)
      started.push((await (await fetch(url, { method: "POST", headers, body: "{}" })).json()).runId);
    await using client = connectAgent({ baseURL: opened.service.url("agent"), token: opened.token });
    await client.submit({ agentId: "helper", prompt: "Hello" }).ended;
    const { runs } = await opened.call("GET", "/api/runs");
    ids = { runId: runs[0].run_id, conversationId: runs[0].conversation_id, workflowRun: started[0]! };
    await opened.page.waitForFunction((title) => document.title === title, `(${GATES}) Overview · Portico`);
    await opened.page.clock.install();
  });
  afterAll(() => opened?.[Symbol.asyncDispose]());

  /**
   * Requests to the service in a minute, by path, after the page was left alone for some time. The realtime connection is left out: to its
   * heartbeat, the clock of the page seems to be broken.
   */
  async function idleMinute(place: string): Promise<string[]> {
    const { page } = opened;
    await page.evaluate((hash) => (location.hash = hash), `#/${place}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await opened.untilRead();
    await page.clock.fastForward(90_000);
    await opened.untilRead();
    const asked: string[] = [];
    const hear = (request: { url(): string }) => {
      const { pathname } = new URL(request.url());
      if (pathname !== "/socket.io/") asked.push(pathname);
    };
    page.on("request", hear);
    for (let step = 0; step < 30; step++) {
      await page.clock.runFor(2_000);
      await opened.untilRead();
    }
    page.off("request", hear);
    return asked;
  }

  it("sends few requests on every page of the navigation, and follows what waits by streams", async () => {
    const links = opened.page.getByRole("navigation", { name: "Pages" }).getByRole("link");
    const places = await links.evaluateAll((all) => all.map((link) => link.getAttribute("href")!.slice(2)));
    expect(places.length).toBeGreaterThan(10);
    const found: Record<string, readonly string[]> = {};
    for (const place of places) found[place] = await idleMinute(place);
    expect(Object.fromEntries(Object.entries(found).filter(([, asked]) => asked.length > MOST))).toEqual({});
    // The badge did not need a single one.
    expect(
      Object.values(found)
        .flat()
        .filter((path) => path.startsWith("/api/workflow/ask/")),
    ).toEqual([]);
  });

  it("sends few requests on the pages of a run, a conversation, a workflow, and a run that waits", async () => {
    const { runId, conversationId, workflowRun } = ids;
    const places = [`runs/${runId}`, `agents/helper/${conversationId}`, "workflows/ask", `workflows/ask/${workflowRun}`];
    const found: Record<string, readonly string[]> = {};
    for (const place of places) found[place] = await idleMinute(place);
    expect(Object.fromEntries(Object.entries(found).filter(([, asked]) => asked.length > MOST))).toEqual({});
  });

  it("tells at once of a gate that opens meanwhile", async () => {
    const url = `${opened.service.url("workflow")}/api/workflow/webhook?id=ask`;
    const headers = { "x-workflow-service-token": SERVICE, "content-type": "application/json" };
    await fetch(url, { method: "POST", headers, body: "{}" });
    await expect.poll(() => opened.page.title()).toMatch(new RegExp(`^\\(${GATES + 1}\\) `));
  });
});
