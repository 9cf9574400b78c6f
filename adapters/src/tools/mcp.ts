import { defineAdapter, ports } from "@portico/core";
import { readServerOptions } from "./mcp/server-options.ts";
import type { McpToolsOptions } from "./mcp-options.ts";

export type { McpToolsOptions } from "./mcp-options.ts";

/**
 * The tools of one MCP server: a program that is started, or a URL with streamable HTTP. Opening neither waits for the server nor
 * fails without it. It throws a TypeError or RangeError for invalid options.
 */
export const mcpTools = defineAdapter({
  name: "tools/mcp",
  port: ports.tools,
  needs: { clock: ports.clock, telemetry: ports.telemetry },
  async open({ clock, telemetry }, options: McpToolsOptions, scope): Promise<ports.ToolSource> {
    const server = readServerOptions(options);
    // The client library loads slowly. An app without MCP servers does not load it.
    const [{ McpConnection }, { ToolCalls }] = await Promise.all([import("./mcp/connection.ts"), import("./mcp/tool-calls.ts")]);
    const connection = new McpConnection(server, clock, telemetry.log);
    scope.onClose(() => connection.close());
    if (options.rotation) {
      scope.onClose(
        options.rotation.follow((next) => {
          if (!next) return () => {};
          const { place } = readServerOptions({ ...options, env: next.env, headers: next.headers });
          return () => connection.replacePlace(place);
        }),
      );
    }
    // In the background: the first caller waits for it, and gets its result.
    void connection.session().catch(() => undefined);
    const calls = new ToolCalls(server, connection, clock);
    return {
      id: server.id,
      owns: (toolId) => toolId.startsWith(`${server.id}/`),
      problems: () => connection.problems,
      list: (signal) => calls.list(signal),
      call: (call, signal) => calls.call(call, signal),
    };
  },
});
