import { type ErrorMaker, reply } from "@portico/core/contract";
import * as v from "valibot";

/** The routes of an MCP server: Streamable HTTP, without sessions that a process holds. `offered` says what its tools are. */
export function mcpRoutes<const E extends Readonly<Record<string, ErrorMaker>>>(offered: string, errors: E) {
  return {
    mcp: {
      method: "POST",
      path: "/mcp",
      summary: `A message of the Model Context Protocol. The tools are ${offered}`,
      // The SDK checks the messages, by the revision of the protocol that each one names.
      body: v.unknown(),
      bodyAs: "text",
      success: reply.bytes(),
      errors,
    },
    endSession: {
      method: "DELETE",
      path: "/mcp",
      summary: "End a session of a revision of 2025. Calls that it began go on",
      success: reply.empty(),
      errors,
    },
  } as const;
}
