import { accessErrors, defineContract, defineErrors, pageEnvelope } from "@portico/core/contract";
import { mcpRoutes } from "../server/mcp-routes.ts";

/** Errors of the workflow service's MCP server before a message is read. Other errors are those of the protocol. */
export const workflowMcpErrors = {
  ...accessErrors,
  ...defineErrors({ workflow_service_not_initialized: { status: 503, message: "workflow_service_not_initialized" } }),
};

/** The MCP server of surface `workflow`. */
export const workflowMcpContract = defineContract(
  { surface: "workflow", auth: "mcp", envelope: pageEnvelope },
  mcpRoutes("workflows whose definition says `mcp: true`", workflowMcpErrors),
);
