import { systemClock } from "@portico/adapters/clock/system";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import * as v from "valibot";
import { afterEach, describe, expect, it } from "vitest";
import { mcpToolSources } from "../../../presets/src/platform/service-adapters.ts";
import { mcpServersSettings } from "@portico/adapters/tools/mcp-options";
import { openAdapter } from "../../conformance/open-adapter.ts";
import { type RawMcpServer, startRawMcpServer } from "../../harness/raw-mcp-server.ts";

let server: RawMcpServer | undefined;
afterEach(() => server?.close());

describe("mcpServers (open points 1 and 3)", () => {
  it("become a source of tools each, under their names, with their headers and their trust", async () => {
    server = await startRawMcpServer([{ name: "look", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } }]);
    const mcpServers = v.parse(mcpServersSettings.mcpServers, {
      shop: { url: server.url, headers: { "x-key": "hidden-word" } },
      desk: { url: server.url, trusted: true },
      files: { command: "no-such-program", args: ["a"], env: { TOKEN: "hidden-word" } },
    });
    const sources = mcpToolSources({ mcpServers });
    expect(sources.map(({ name }) => name)).toEqual(["tools/mcp", "tools/mcp", "tools/mcp"]);
    const risks: string[] = [];
    for (const source of sources.slice(0, 2)) {
      const { port, close } = await openAdapter(source, [systemClock(), memoryTelemetry({})]);
      for (const { id, riskLevel } of await port.list()) risks.push(`${port.id}: ${id} ${riskLevel}`);
      await close();
    }
    expect(risks).toEqual(["shop: shop/look medium", "desk: desk/look low"]);
    expect(server.requests[0]?.headers["x-key"]).toBe("hidden-word");
    expect(sources[2]?.options).toMatchObject({ id: "files", command: "no-such-program", args: ["a"], trusted: false });
  });

  it("set for each server how long a tool may be silent, and the folder of a program", () => {
    const mcpServers = v.parse(mcpServersSettings.mcpServers, {
      files: { command: "files", cwd: "/srv/files", callTimeoutMs: 300_000 },
      shop: { url: "http://127.0.0.1", callTimeoutMs: 1000 },
    });
    const options = mcpToolSources({ mcpServers }).map((source) => source.options);
    expect(options).toMatchObject([{ cwd: "/srv/files", callTimeoutMs: 300_000 }, { callTimeoutMs: 1000 }]);
    const refused = [
      { url: "http://127.0.0.1", cwd: "/srv" },
      { command: "files", callTimeoutMs: 0 },
    ];
    for (const wrong of refused) expect(v.safeParse(mcpServersSettings.mcpServers, { wrong }).success).toBe(false);
  });

  it("set the transport of an address, and refuse one of a program and an unknown one", () => {
    const mcpServers = v.parse(mcpServersSettings.mcpServers, { shop: { url: "http://127.0.0.1", transport: "sse" } });
    expect(mcpToolSources({ mcpServers })[0]?.options).toMatchObject({ transport: "sse" });
    const refused = [
      { command: "files", transport: "sse" },
      { url: "http://127.0.0.1", transport: "stdio" },
    ];
    for (const wrong of refused) expect(v.safeParse(mcpServersSettings.mcpServers, { wrong }).success).toBe(false);
  });

  it("refuse an invalid value of `trust`", () => {
    expect(v.safeParse(mcpServersSettings.mcpServers, { shop: { url: "http://127.0.0.1", trusted: "yes" } }).success).toBe(false);
  });
});
