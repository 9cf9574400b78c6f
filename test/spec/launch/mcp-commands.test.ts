import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type McpAccountServer, startMcpAccountServer } from "../../harness/mcp-account-server.ts";
import { openCommand, runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

// A test runs several commands, one after another.
vi.setConfig({ testTimeout: 120_000 });

let folder: ReturnType<typeof temporaryFolder>;
let server: McpAccountServer;
beforeEach(async () => {
  folder = temporaryFolder();
  server = await startMcpAccountServer();
});
afterEach(async () => {
  await server.close();
  folder.remove();
});

const configOf = () => ({ mcpServers: { shop: { url: server.url, auth: { type: "oauth" } }, plain: { url: server.url } } });
const portico = (line: string) => runCommand(line.split(" "), { cwd: folder.path });
const stateOf = async () => JSON.parse((await portico("mcp status --json")).stdout);

/** Runs `portico mcp login shop`, and visits the address that it prints. */
async function login(visit: (url: string) => Promise<unknown>) {
  const command = openCommand(["mcp", "login", "shop"], { cwd: folder.path });
  await vi.waitFor(() => expect(command.stdout()).toMatch(/\n$/), { timeout: 60_000, interval: 50 });
  await visit(command.stdout().trim());
  return command.ended;
}

const agree = (url: string) => fetch(server.authorization.agree(url));

describe("portico mcp", () => {
  it("connects a server while the service runs, which then has its tools, shows it, and disconnects it", async () => {
    await using service = await startPortico({ cwd: folder.path, config: configOf() });
    expect(await stateOf()).toEqual([{ server: "shop", state: "not_connected" }]);

    const { code, stdout, stderr } = await login(agree);
    expect([code, stderr]).toEqual([0, expect.stringContaining("Connected shop, with the scopes shop.read.")]);
    for (const secret of server.authorization.secrets) expect(stdout + stderr).not.toContain(secret);
    expect(await stateOf()).toEqual([
      { server: "shop", state: "connected", connectedAt: expect.any(String), scope: "shop.read" },
    ]);
    // The service connects in the background.
    await vi.waitFor(() => expect(server.headers.length).toBeGreaterThan(0), { timeout: 40_000, interval: 100 });

    expect(await portico("mcp logout shop")).toMatchObject({ code: 0, stdout: "Disconnected shop.\n" });
    expect(await stateOf()).toEqual([{ server: "shop", state: "not_connected" }]);
    expect(await portico("mcp logout shop")).toMatchObject({ code: 0, stdout: "shop was not connected.\n" });
    expect(await service.stop()).toBe(0);
  });

  it("ignores returns with another state, and fails if the person refuses", async () => {
    writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify(configOf()));
    const { code, stderr } = await login(async (url) => {
      const { searchParams } = new URL(url);
      const back = new URL(searchParams.get("redirect_uri")!);
      back.search = "?state=another&code=x";
      expect((await fetch(back)).status).toBe(404);
      back.search = String(new URLSearchParams({ state: searchParams.get("state")!, error: "access_denied" }));
      expect((await fetch(back)).status).toBe(200);
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining("The service gave no access (refused)")]);
  });

  it("refuses a server without auth with 64", async () => {
    writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify(configOf()));
    for (const line of ["mcp login plain", "mcp logout other"]) {
      const { code, stderr } = await portico(line);
      expect([code, stderr]).toEqual([64, expect.stringContaining("Servers with auth: shop")]);
    }
  });
});
