import { definePlugin, type Guard, optional, ports, scraperAccess } from "@portico/core";
import { askedTurnsPort } from "@portico/plugins/conversations-runs/asked-turns";
import * as v from "valibot";
import { openToolServer } from "../server/open-tool-server.ts";
import { agentTools } from "./agent-tools.ts";
import { agentMcpContract } from "./contract.ts";

/**
 * `/mcp` on surface `agent`: an MCP server (Streamable HTTP) whose tools are the agents whose `agent.json` says `mcp: true`. A call is a turn of
 * the token's user.
 */
export const agentMcp = definePlugin({
  name: "agent-mcp",
  summary: "An MCP server whose tools are agents.",
  config: v.strictObject({
    /** The server's version, as clients are told. Default: `0.0.0`. */
    version: v.optional(v.string(), "0.0.0"),
    /** The address where a person decides about the calls of a run. Default: answers name only the call of the agent service. */
    approvalsUrl: v.optional(
      v.custom<(runId: string) => string | undefined>(
        (value) => typeof value === "function",
        "a function that returns an address",
      ),
      () => () => undefined,
    ),
  }),
  needs: {
    asked: askedTurnsPort,
    agents: ports.agents,
    identity: ports.identity,
    clock: ports.clock,
    ids: ports.ids,
    telemetry: ports.telemetry,
    bus: optional(ports.bus),
  },
  contract: agentMcpContract,
  security: { mcp: scraperAccess.security! },
  // MCP clients send `Authorization: Bearer`, as scrapers do.
  guards: ({ identity }) => ({ mcp: scraperAccess.guard({ identity }) as Guard<Promise<ports.Caller>> }),
  setup({ asked, agents, clock, ids, telemetry, bus }, { version, approvalsUrl }, scope) {
    const tools = agentTools({ asked, agents, clock, approvalsUrl, log: telemetry.log });
    const server = openToolServer({ name: "portico-agents", version, tools, ids, bus, log: telemetry.log }, scope);
    return {
      mcp: ({ request, body, who, signal, stopping }) =>
        server.answer({ request, body, who, callerId: `user ${who.userId}`, signal, stopping }),
      // A session is only a name.
      endSession() {},
    };
  },
});
