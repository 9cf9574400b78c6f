import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectAgent } from "@portico/client";
import { findChromium, useChromium } from "../../harness/chromium.ts";
import { type OpenConsole, openConsole } from "../../harness/console.ts";

describe.skipIf(findChromium() === undefined)("the overview of the web console", () => {
  const browser = useChromium();
  let opened: OpenConsole;
  beforeAll(async () => {
    opened = await openConsole({
      browser: browser(),
      // Its model is nobody's: every turn of it fails.
      files: { "agents/broken/agent.json": { name: "Broken", provider: "nobody", model: "none" } },
    });
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const area = (title: string) =>
    opened.page.getByRole("listitem").filter({ has: opened.page.getByRole("heading", { name: title }) });
  /** The number below a label. */
  const figure = (label: string) => opened.page.locator("dl > div").filter({ hasText: label }).locator("dd").first();

  it("shows each area with its address and its health", async () => {
    for (const [title, surface] of [
      ["Agent service", "agent"],
      ["Workflow service", "workflow"],
      ["Model proxy", "proxy"],
    ] as const) {
      await area(title).getByText(opened.service.url(surface), { exact: true }).waitFor();
    }
    await area("Agent service").getByText("Ready", { exact: true }).waitFor();
    await area("Workflow service").getByText("Ready", { exact: true }).waitFor();
    await area("Model proxy").getByText("Listening", { exact: true }).waitFor();
  });

  it("says who is there", async () => {
    const { serverInstanceId, version } = await opened.call("GET", "/api/handshake");
    await opened.page.getByText(`Portico ${version} · instance ${serverInstanceId}`).waitFor();
  });

  it("counts what is asked of the service while it is looked at", async () => {
    const before = Number(await figure("Requests").textContent());
    for (let asked = 0; asked < 20; asked++) await opened.call("GET", "/api/agents");
    await expect
      .poll(async () => Number(await figure("Requests").textContent()), { timeout: 15_000 })
      .toBeGreaterThan(before + 19);
    expect(await figure("Memory").textContent()).toMatch(/^\d+ MB$/);
  });

  it("lists the runs that failed last, and leads to them", async () => {
    await opened.page.getByText("No run has failed").waitFor();
    await using client = connectAgent({ baseURL: opened.service.url("agent"), token: opened.token });
    expect((await client.submit({ agentId: "broken", prompt: "Hello" }).ended).status).toBe("failed");
    const row = opened.page.getByRole("table", { name: "Failed runs" }).getByRole("row").filter({ hasText: "broken" });
    await row.waitFor({ timeout: 15_000 });
    const { runs } = await opened.call("GET", "/api/runs");
    expect(await row.getByRole("link").getAttribute("href")).toBe(`#/runs/${runs[0].run_id}`);
  });
});
