import { bearerToken, definePlugin, type Guard, optional, ports } from "@portico/core";
import { serviceAccess, type ServiceAccess } from "@portico/plugins/workflow-service/access";
import { serviceScheme } from "@portico/plugins/workflow-service/guards";
import { workflowRuntime } from "@portico/plugins/workflow-service/runtime";
import * as v from "valibot";
import { openToolServer } from "../server/open-tool-server.ts";
import { workflowMcpContract, workflowMcpErrors } from "./contract.ts";
import { workflowTools } from "./workflow-tools.ts";

/**
 * `/mcp` on surface `workflow`: an MCP server (Streamable HTTP) whose tools are the workflows whose definition says `mcp: true`. Its callers have
 * the token of the workflow service.
 */
export const workflowMcp = definePlugin({
  name: "workflow-mcp",
  summary: "An MCP server whose tools are workflows.",
  config: v.strictObject({
    /** The server's version, as clients are told. Default: `0.0.0`. */
    version: v.optional(v.string(), "0.0.0"),
    /** The address at which people reach the workflow service. Default: answers name only the path of a run. */
    publicUrl: v.optional(v.string(), ""),
  }),
  needs: {
    runtime: workflowRuntime,
    access: serviceAccess,
    log: ports.log,
    clock: ports.clock,
    ids: ports.ids,
    telemetry: ports.telemetry,
    audit: optional(ports.audit),
    bus: optional(ports.bus),
  },
  contract: workflowMcpContract,
  security: {
    mcp: [{ type: "http", scheme: "bearer", description: "The workflow service's token" }, serviceScheme],
  },
  guards: ({ access }) => ({ mcp: mcpGuard(access) }),
  setup({ bus, ids, telemetry, ...given }, { version, publicUrl }, scope) {
    const closing = new AbortController();
    scope.onClose(() => closing.abort());
    const tools = workflowTools({ ...given, telemetry, publicUrl, closing: closing.signal });
    const server = openToolServer({ name: "portico-workflows", version, tools, ids, bus, log: telemetry.log }, scope);
    return {
      mcp: ({ request, body, head, signal, stopping }) =>
        server.answer({ request, body, who: head, callerId: "workflow service", signal, stopping }),
      // A session is only a name.
      endSession() {},
    };
  },
});

/** MCP clients send `Authorization: Bearer`. Other callers of the workflow service have a header of its own. */
function mcpGuard(access: ServiceAccess): Guard<Promise<true>> {
  return async (head) => {
    const isAllowed = await access.allows(bearerToken(head) ?? head.header("x-workflow-service-token") ?? "");
    if (isAllowed === undefined) throw workflowMcpErrors.workflow_service_not_initialized();
    if (!isAllowed) throw workflowMcpErrors.unauthorized();
    return true;
  };
}
