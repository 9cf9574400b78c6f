import { accessErrors, defineContract, defineErrors, pageEnvelope, reply } from "@portico/core/contract";
import * as v from "valibot";

/** Errors of the workflow service's MCP server before a message is read. Other errors are those of the protocol. */
export const workflowMcpErrors = {
  ...accessErrors,
  ...defineErrors({ workflow_service_not_initialized: { status: 503, message: "workflow_service_not_initialized" } }),
};

/** The MCP server of surface `workflow`: Streamable HTTP, without sessions that a process holds. */
export const workflowMcpContract = defineContract(
  { surface: "workflow", auth: "mcp", envelope: pageEnvelope },
  {
    mcp: {
      method: "POST",
      path: "/mcp",
      summary: "A message of the Model Context Protocol. The tools are workflows whose definition says `mcp: true`",
      // The SDK checks the messages, by the revision of the protocol that each one names.
      body: v.unknown(),
      bodyAs: "text",
      success: reply.bytes(),
      errors: workflowMcpErrors,
    },
  },
);
