// The MCP server of `mcp-tools.ts`. It runs as a program, or is called over HTTP.
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";

/** A server with one harmless tool. */
export function createShop(): McpServer {
  const server = new McpServer({ name: "shop", version: "1" });
  const about = { description: "When the shop is open", annotations: { readOnlyHint: true } };
  server.registerTool("opening-hours", about, async () => ({ content: [{ type: "text", text: "From nine to five." }] }));
  return server;
}

if (import.meta.main) await createShop().connect(new StdioServerTransport());
