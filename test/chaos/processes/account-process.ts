import { systemClock } from "@portico/adapters/clock/system";
import { sqliteStore } from "@portico/adapters/stores/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import { mcpAccountTools } from "@portico/adapters/tools/mcp";
import type { ports } from "@portico/core";
import { openAdapter } from "../../conformance/open-adapter.ts";

// Runs in its own process, which the test kills: connects an account of an MCP server with the state and code that it is sent, or calls its tool.
const [dir = "", url = ""] = process.argv.slice(2);
const auth = { type: "oauth" as const, per: "instance" as const, allow: [] };
const { port } = await openAdapter(mcpAccountTools({ id: "shop", url, auth }), [
  systemClock(),
  memoryTelemetry({}),
  ...sqliteStore({ dir }),
]);
const source = port as ports.ToolSource & { readonly authorization: ports.ToolAuthorization };
const signal = AbortSignal.timeout(60_000);
process.on("message", async (received: ports.FinishAuthorization | "greet") => {
  if (received === "greet") await source.call({ toolId: "shop/greet", arguments: { name: "Ada" }, caller: {} }, signal);
  else await source.authorization.finish(received, signal);
  process.send?.("done");
});
const begun = await source.authorization.begin({ redirectUrl: "https://desk.example/" }, signal);
process.send?.(begun.url);
