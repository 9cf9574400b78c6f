import { defineAdapter, ports } from "@portico/core";
import { type McpToolsOptions, readServerOptions } from "./mcp/server-options.ts";

export type { McpToolsOptions } from "./mcp/server-options.ts";

/**
 * The tools of one MCP server: a program that is started, or an address that speaks streamable HTTP. Opening neither waits for the server
 * nor fails without it; it throws a TypeError or RangeError for options that fit no server.
 */
export const mcpTools = defineAdapter({
  name: "tools/mcp",
  port: ports.tools,
  needs: { clock: ports.clock, telemetry: ports.telemetry },
  async open({ clock, telemetry }, options: McpToolsOptions, scope): Promise<ports.ToolSource> {
    const server = readServerOptions(options);
    // The client library takes its time to load; an app that has no MCP servers does not wait for it.
    const [{ McpConnection }, { ToolCalls }] = await Promise.all([import("./mcp/connection.ts"), import("./mcp/tool-calls.ts")]);
    const connection = new McpConnection(server, clock, telemetry.log);
    scope.onClose(() => connection.close());
    // In the background: whoever asks first waits for it, and learns what became of it.
    void connection.session().catch(() => undefined);
    const calls = new ToolCalls(server, connection, clock);
    return { id: server.id, list: (signal) => calls.list(signal), call: (call, signal) => calls.call(call, signal) };
  },
});
