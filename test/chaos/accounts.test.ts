import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { mcpAccountTools } from "@portico/adapters/tools/mcp";
import type { ports } from "@portico/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openAdapter } from "../conformance/open-adapter.ts";
import { type McpAccountServer, startMcpAccountServer } from "../harness/mcp-account-server.ts";
import { temporaryFolder } from "../harness/portico-process.ts";

vi.setConfig({ testTimeout: 60_000 });

let folder: ReturnType<typeof temporaryFolder>;
let server: McpAccountServer;
let child: ChildProcess | undefined;
beforeEach(async () => {
  folder = temporaryFolder();
  server = await startMcpAccountServer();
});
afterEach(async () => {
  child?.kill("SIGKILL");
  await server.close();
  folder.remove();
});

/** A process, and what a person comes back with to it. */
async function startProcess() {
  const started = fork(join(import.meta.dirname, "processes/account-process.ts"), [folder.path, server.url]);
  child = started;
  const [url] = (await once(started, "message")) as [string];
  return { started, received: returned(url) };
}

function returned(url: string) {
  return Object.fromEntries(new URL(server.authorization.agree(url)).searchParams) as { state: string; code: string };
}

/** The service has given tokens, and the process is killed before it has the answer. */
async function killAtTokens(process: ChildProcess, message: object | string) {
  server.authorization.beforeTokens = async () => {
    const exited = once(process, "exit");
    process.kill("SIGKILL");
    await exited;
  };
  const exited = once(process, "exit");
  process.send(message);
  expect(await exited).toEqual([null, "SIGKILL"]);
  server.authorization.beforeTokens = undefined;
}

/** The next process, after the lease of a renewal has expired. */
async function openNext() {
  const clock = createManualClock({ startAt: new Date(Date.now() + 60_000).toISOString() });
  const auth = { type: "oauth" as const, per: "instance" as const, allow: [] };
  const { port, close } = await openAdapter(mcpAccountTools({ id: "shop", url: server.url, auth }), [
    manualClock({ clock }),
    memoryTelemetry({}),
    ...sqliteStore({ dir: folder.path }),
  ]);
  const source = port as ports.ToolSource & { readonly authorization: ports.ToolAuthorization };
  const signal = AbortSignal.timeout(30_000);
  return {
    close,
    authorization: source.authorization,
    greet: () => source.call({ toolId: "shop/greet", arguments: { name: "Ada" }, caller: {} }, signal),
    async connectAgain() {
      const { url } = await source.authorization.begin({ redirectUrl: "https://desk.example/" }, signal);
      await source.authorization.finish(returned(url), signal);
    },
  };
}

const lost = { name: "ToolsNotConnected", message: expect.stringMatching(/^connect_again: /) };
const greeting = { content: [{ type: "text", text: "Hello Ada" }], isError: false };

describe("a process that is killed while it waits for tokens of an MCP server", () => {
  it("after a person agreed: the account is not connected, and can be connected again", async () => {
    const { started, received } = await startProcess();
    await killAtTokens(started, received);
    const next = await openNext();
    expect(await next.authorization.status()).toEqual({ state: "not_connected" });
    await expect(next.greet()).rejects.toMatchObject(lost);
    await expect(next.authorization.finish(received, AbortSignal.timeout(10_000))).rejects.toMatchObject({
      code: "state_invalid",
    });
    await next.connectAgain();
    expect(await next.greet()).toEqual(greeting);
    await next.close();
  });

  it("during a renewal: the account has ended, as its refresh token is spent, and can be connected again", async () => {
    const { started, received } = await startProcess();
    started.send(received);
    await once(started, "message");
    started.send("greet");
    await once(started, "message");
    server.authorization.expireTokens();
    await killAtTokens(started, "greet");
    const next = await openNext();
    await expect(next.greet()).rejects.toMatchObject(lost);
    expect(await next.authorization.status()).toMatchObject({ state: "ended" });
    await next.connectAgain();
    expect(await next.greet()).toEqual(greeting);
    await next.close();
  });
});
