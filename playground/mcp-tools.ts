// Tools of MCP servers. The app starts the first server as a program, and calls the second one over HTTP.
import { createMcpHandler } from "@modelcontextprotocol/server";
import { systemClock } from "@portico/adapters/clock/system";
import { openTelemetry } from "@portico/adapters/telemetry/opentelemetry";
import { mcpTools } from "@portico/adapters/tools/mcp";
import { type App, createApp, ports, Secret } from "@portico/core";
import { H3, HTTPError } from "h3";
import { toNodeHandler } from "h3/node";
import { type Listening, listen } from "./listen.ts";
import { createShop } from "./shop-server.ts";

const program = `${import.meta.dirname}/shop-server.ts`;

/** An app that has only the tools of two servers. */
export function start(url: string): Promise<App> {
  const token = "a-token-for-this-story";
  return createApp({
    name: "mcp-tools",
    adapters: [
      systemClock(),
      openTelemetry({ level: "error" }),
      mcpTools({ id: "corner", command: process.execPath, args: [program], env: { TOKEN: new Secret(token) } }),
      mcpTools({ id: "market", url, headers: { authorization: new Secret(`Bearer ${token}`) }, trusted: true }),
    ],
  });
}

/** The server that is called over HTTP. */
export async function openMarket(): Promise<Listening> {
  const market = createMcpHandler(createShop);
  const host = new H3().all("/mcp", ({ req }) => {
    if (req.headers.get("authorization") !== "Bearer a-token-for-this-story") throw new HTTPError({ status: 401 });
    return market.fetch(req);
  });
  const listening = await listen(toNodeHandler(host));
  return {
    ...listening,
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await market.close();
    },
  };
}

if (import.meta.main) {
  await using market = await openMarket();
  await using app = await start(`${market.url}/mcp`);
  for (const source of app.port(ports.tools)) {
    for (const { id, riskLevel } of await source.list()) {
      const call = { toolId: id, arguments: {}, caller: {} };
      console.log(id, riskLevel, (await source.call(call, AbortSignal.timeout(5_000))).content);
    }
  }
}
