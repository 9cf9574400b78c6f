import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { createToolsServer } from "../../harness/mcp-tools-server.ts";

// A process of its own: an MCP server over its standard input and output. Told `stubborn`, it does not end when it is asked to.
if (process.argv.includes("stubborn")) {
  process.on("SIGTERM", () => undefined);
  setInterval(() => undefined, 1_000);
}
await createToolsServer().connect(new StdioServerTransport());
