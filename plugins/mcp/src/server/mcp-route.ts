import { type ErrorMaker, reply } from "@portico/core/contract";
import * as v from "valibot";

/** The route of an MCP server: Streamable HTTP, without sessions that a process holds. `offered` says what its tools are. */
export function mcpRoute<const E extends Readonly<Record<string, ErrorMaker>>>(offered: string, errors: E) {
  return {
    method: "POST",
    path: "/mcp",
    summary: `A message of the Model Context Protocol. The tools are ${offered}`,
    // The SDK checks the messages, by the revision of the protocol that each one names.
    body: v.unknown(),
    bodyAs: "text",
    success: reply.bytes(),
    errors,
  } as const;
}
