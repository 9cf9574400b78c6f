import { accessErrors, defineContract, pageEnvelope } from "@portico/core/contract";
import { mcpRoutes } from "../server/mcp-routes.ts";

/** The MCP server of surface `agent`. */
export const agentMcpContract = defineContract(
  { surface: "agent", auth: "mcp", envelope: pageEnvelope },
  mcpRoutes("agents whose `agent.json` says `mcp: true`", accessErrors),
);
