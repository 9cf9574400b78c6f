import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";
import { createContextServer } from "../../harness/mcp-context-server.ts";
import { type McpHttpServer, startMcpHttpServer } from "../../harness/mcp-http-server.ts";
import { type McpAccountServer, startMcpAccountServer } from "../../harness/mcp-account-server.ts";

describe.skipIf(findChromium() === undefined)("prompts of MCP servers in the web console", () => {
  const browser = useChromium();
  let server: McpHttpServer;
  let desk: McpAccountServer;
  let opened: OpenConsole;
  beforeAll(async () => {
    server = await startMcpHttpServer(createContextServer);
    desk = await startMcpAccountServer();
    opened = await openConsole({
      browser: browser(),
      files: { "agents/clerk/agent.json": { name: "Clerk", prompts: ["shop/*", "desk/*"] } },
      config: {
        mcpServers: { shop: { url: server.url }, desk: { url: desk.url, auth: { type: "oauth" } } },
      },
    });
    await opened.page.evaluate(() => (location.hash = "#/agents/clerk"));
    await opened.page.getByRole("heading", { name: "New conversation" }).waitFor();
  });
  afterAll(async () => {
    await opened[Symbol.asyncDispose]();
    await Promise.all([server.close(), desk.close()]);
  });

  const page = () => opened.page;
  const input = () => page().getByLabel("Message to Clerk");
  const list = () => page().getByRole("listbox", { name: "Prompts" });
  const selected = () => list().getByRole("option", { selected: true });
  const sent = async () => (await opened.call("GET", "/api/conversations")).conversations.length as number;

  it("are listed when a message begins with /, and the list has no findings in any look", async () => {
    await input().pressSequentially("/");
    await list().waitFor();
    expect(await list().getByRole("option").count()).toBe(4);
    expect(await selected().textContent()).toContain("/shop/offer");
    await page().getByText("The prompts of desk need an account.").getByRole("link", { name: "Connect it" }).waitFor();
    expect(await findingsInEveryLook(page())).toEqual([]);
  });

  it("are chosen with the arrow keys, and the focus stays in the message", async () => {
    await input().press("ArrowDown");
    await expect.poll(() => selected().textContent()).toContain("/shop/greet");
    await input().press("ArrowUp");
    await input().press("ArrowUp");
    await expect.poll(() => selected().textContent()).toContain("/shop/refuse");
    expect(await input().getAttribute("aria-activedescendant")).toBe(await selected().getAttribute("id"));
    expect(await input().evaluate((element) => element === document.activeElement)).toBe(true);
  });

  it("are found by their names, closed with Escape, and opened again by what is typed next", async () => {
    await input().press("Escape");
    await list().waitFor({ state: "detached" });
    expect(await input().inputValue()).toBe("/");
    await input().fill("");
    await input().pressSequentially("/");
    await list().waitFor();
    await input().press("Escape");
    await list().waitFor({ state: "detached" });
    await input().pressSequentially("gre");
    await expect.poll(() => list().getByRole("option").allTextContents()).toEqual([expect.stringContaining("/shop/greet")]);
  });

  it("become the text of the message at Enter, and nothing is sent", async () => {
    await input().press("Enter");
    await expect.poll(() => input().inputValue()).toBe("This is greet.");
    await list().waitFor({ state: "detached" });
    expect(await sent()).toBe(0);
  });

  it("ask for their arguments", async () => {
    await input().fill("/off");
    await list().waitFor();
    await input().press("Enter");
    const dialog = page().getByRole("dialog", { name: "Offer a product" });
    await dialog.getByLabel("product", { exact: true }).fill("tea");
    expect(await dialog.getByLabel("tone (optional)").count()).toBe(1);
    expect(await findingsInEveryLook(page())).toEqual([]);
    await dialog.getByLabel("product", { exact: true }).press("Enter");
    await dialog.waitFor({ state: "detached" });
    await expect.poll(() => input().inputValue()).toBe("Write an offer for tea.");
    expect(await sent()).toBe(0);
    await input().press("Enter");
    await page().getByRole("region", { name: "Messages" }).getByText("You said: Write an offer for tea.").waitFor();
  });

  it("with hidden characters say so before the person sends them", async () => {
    await input().fill("/off");
    await list().waitFor();
    await input().press("Enter");
    const dialog = page().getByRole("dialog", { name: "Offer a product" });
    await dialog.getByLabel("product", { exact: true }).fill("t\u200bea");
    await dialog.getByLabel("product", { exact: true }).press("Enter");
    await page().getByText("The prompt has hidden characters").waitFor();
    expect(await input().inputValue()).toBe("Write an offer for t\u200bea.");
  });

  it("that the server refuses say so in its words, and the message stays", async () => {
    await input().fill("/refuse");
    await list().waitFor();
    await input().press("Enter");
    await page().getByText("The shop is closed on Sundays").waitFor();
    expect(await input().inputValue()).toBe("/refuse");
  });
});
