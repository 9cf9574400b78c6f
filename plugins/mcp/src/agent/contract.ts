import { accessErrors, defineContract, pageEnvelope } from "@portico/core/contract";
import { mcpRoute } from "../server/mcp-route.ts";

/** The MCP server of surface `agent`. */
export const agentMcpContract = defineContract(
  { surface: "agent", auth: "mcp", envelope: pageEnvelope },
  { mcp: mcpRoute("agents whose `agent.json` says `mcp: true`", accessErrors) },
);
