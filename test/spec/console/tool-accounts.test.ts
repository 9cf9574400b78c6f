import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium, useChromium } from "../../browser/chromium.ts";
import { findingsInEveryLook, type OpenConsole, openConsole } from "../../browser/console.ts";
import { type McpAccountServer, startMcpAccountServer } from "../../harness/mcp-account-server.ts";

const MEMBER = "member-token-0123456789";

describe.skipIf(findChromium() === undefined)("accounts of MCP servers in the web console", () => {
  const browser = useChromium();
  let server: McpAccountServer;
  let opened: OpenConsole;
  beforeAll(async () => {
    server = await startMcpAccountServer();
    const auth = { type: "oauth" };
    opened = await openConsole({
      browser: browser(),
      elsewhere: [server.authorization.issuer],
      config: {
        agent: { tokens: [{ token: MEMBER, userId: "mia", role: "member" }] },
        mcpServers: {
          shop: { url: server.url, auth },
          desk: { url: server.url, auth: { ...auth, per: "user" } },
          plain: { url: server.url },
        },
      },
    });
    await opened.goTo("MCP accounts");
  });
  afterAll(async () => {
    await opened[Symbol.asyncDispose]();
    await server.close();
  });

  const row = (name: string) => {
    const { page } = opened;
    const rows = page.getByRole("table", { name: "Accounts" }).getByRole("row");
    return rows.filter({ has: page.getByRole("rowheader", { name, exact: true }) });
  };
  const stateOf = async (sourceId: string) => {
    const { accounts } = await opened.call("GET", "/api/tool-accounts");
    return accounts.find((account: any) => account.sourceId === sourceId).state;
  };
  /** Leaves for the authorization server, chooses there, and is back. */
  async function choose(name: string, choice: "Agree" | "Refuse" | "Mislead") {
    const { page, service } = opened;
    await row(name).getByRole("button", { name: "Connect" }).click();
    await page.getByRole("link", { name: choice }).click();
    await page.waitForURL(`${service.url("agent")}/#/accounts`);
  }
  async function signInAndStay(token = opened.token) {
    await opened.page.getByLabel("Stay signed in").check();
    await opened.signIn(token);
    await opened.page.getByRole("heading", { level: 1, name: "MCP accounts" }).waitFor();
  }

  it("are listed without servers that use no account, and have no findings in any look", async () => {
    const { page } = opened;
    await row("shop").getByText("Not connected").waitFor();
    expect(await row("desk").getByText("Your own").count()).toBe(1);
    expect(await row("plain").count()).toBe(0);
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("are connected after another sign-in, if the session was not kept, and the address keeps no parameter", async () => {
    const { page } = opened;
    await page.getByText("You then sign in to the console again").waitFor();
    await choose("shop", "Agree");
    await page.getByRole("alert").getByText("to finish connecting").waitFor();
    expect(await stateOf("shop")).toBe("not_connected");
    await signInAndStay();
    await row("shop").getByText("Connected", { exact: true }).waitFor();
    expect(await stateOf("shop")).toBe("connected");
    expect(await page.evaluate(() => location.search)).toBe("");
    expect(await findingsInEveryLook(page)).toEqual([]);
  });

  it("are disconnected after a confirmation", async () => {
    const { page } = opened;
    await row("shop").getByRole("button", { name: "Disconnect" }).click();
    const dialog = page.getByRole("alertdialog");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    expect(await stateOf("shop")).toBe("connected");
    await row("shop").getByRole("button", { name: "Disconnect" }).click();
    await dialog.getByRole("button", { name: "Disconnect" }).click();
    await row("shop").getByText("Not connected").waitFor();
    expect(await stateOf("shop")).toBe("not_connected");
  });

  it("are connected without another sign-in, if the session was kept", async () => {
    await choose("desk", "Agree");
    await row("desk").getByText("Connected", { exact: true }).waitFor();
    expect(await stateOf("desk")).toBe("connected");
  });

  it.each([
    ["Refuse", "The person or the service refused"],
    ["Mislead", "The state is unknown"],
  ] as const)("stay as they are, and the page says why: %s", async (choice, reason) => {
    const { page } = opened;
    await choose("shop", choice);
    await page.getByRole("alert").filter({ hasText: "“shop” was not connected" }).getByText(reason).waitFor();
    expect(await stateOf("shop")).toBe("not_connected");
  });

  it("are not connected by an address that another person gave", async () => {
    const { page, service } = opened;
    await page.goto(`${service.url("agent")}/?state=theirs&code=theirs`);
    await page.getByRole("alert").getByText("this tab was not connecting one").waitFor();
    expect(await page.evaluate(() => location.search)).toBe("");
  });

  it("of a member are the member's own, and only the owner connects those of the instance", async () => {
    const { page } = opened;
    await page.getByRole("button", { name: "Sign out" }).click();
    await signInAndStay(MEMBER);
    await row("desk").getByText("Not connected").waitFor();
    await row("shop").getByText("Only the owner connects it").waitFor();
    expect(await row("shop").getByRole("button").count()).toBe(0);
    await choose("desk", "Agree");
    await row("desk").getByText("Connected", { exact: true }).waitFor();
    await row("desk").getByRole("button", { name: "Disconnect" }).click();
    await page.getByRole("alertdialog").getByRole("button", { name: "Disconnect" }).click();
    await row("desk").getByText("Not connected").waitFor();
    // The owner's account is another one.
    expect(await stateOf("desk")).toBe("connected");
  });
});
