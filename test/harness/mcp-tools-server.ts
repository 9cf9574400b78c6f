import { spawn } from "node:child_process";
import { ProtocolError, Server } from "@modelcontextprotocol/server";

/** The events of `hang` calls that a server observed. */
export interface HangingCalls {
  begun: number;
  cancelled: number;
}

const nothing = { type: "object" };

/**
 * An MCP server, made with the official package, with tools for tests of a client: `greet`, `break`, `hang`, `knock` (reports progress as
 * often as requested), `calls` (the results of `hang`, and the id of the process), `leave` (the process ends), `bequeath` (it ends and
 * leaves its standard output to another process, whose id it returns), and `grow`, which adds one more tool.
 */
export function createToolsServer(calls: HangingCalls = { begun: 0, cancelled: 0 }): Server {
  const server = new Server({ name: "tools", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  const tools = [
    {
      name: "greet",
      description: "Greets somebody",
      inputSchema: {
        type: "object",
        properties: { name: { type: "string", minLength: 1 } },
        required: ["name"],
        additionalProperties: false,
      },
      annotations: { readOnlyHint: true },
    },
    ...["break", "hang", "calls", "grow", "leave", "bequeath"].map((name) => ({
      name,
      description: `Does ${name}`,
      inputSchema: nothing,
    })),
    {
      name: "knock",
      description: "Knocks",
      inputSchema: { type: "object", properties: { times: { type: "integer" } } },
      annotations: { idempotentHint: true },
    },
  ];

  server.setRequestHandler("tools/list", () => ({ tools: tools as never }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const args = params.arguments ?? {};
    const text = (said: string) => ({ content: [{ type: "text" as const, text: said }] });
    switch (params.name) {
      case "greet":
        return text(`Hello ${args["name"]}`);
      case "break":
        throw new ProtocolError(-32_603, "hidden-word");
      case "calls":
        return text(JSON.stringify({ ...calls, pid: process.pid }));
      case "grow":
        tools.push({ name: "grown", description: "Was not there before", inputSchema: nothing });
        await server.sendToolListChanged();
        return text("grown");
      case "leave":
        process.exit(0);
      case "bequeath": {
        const heir = spawn(process.execPath, ["-e", "setInterval(() => {}, 1_000)"], { stdio: ["ignore", "inherit", "ignore"] });
        // Once the answer is out.
        setImmediate(() => process.stdout.write("", () => process.exit(0)));
        return text(String(heir.pid));
      }
      case "knock": {
        const progressToken = params._meta?.progressToken;
        for (let progress = 1; progress <= Number(args["times"]) && progressToken !== undefined; progress++) {
          await context.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress } });
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
        return text("knocked");
      }
      case "hang": {
        calls.begun++;
        const { signal } = context.mcpReq;
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        calls.cancelled++;
        return text("too late");
      }
      default:
        throw new ProtocolError(-32_602, "There is no such tool");
    }
  });
  return server;
}
