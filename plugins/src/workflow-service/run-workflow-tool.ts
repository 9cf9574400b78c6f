import { defineAdapter, jsonObject, later, ports, ServiceError } from "@portico/core";
import * as v from "valibot";
import { depthBelow, TOO_DEEP, toServiceError } from "./service/start-runs.ts";
import { workflowRuntime } from "./workflow-runtime.ts";

const TOOL_ID = "RunWorkflow";

/** The description of the tool for models. */
export const runWorkflowDefinition: ports.ToolDefinition = {
  id: TOOL_ID,
  name: TOOL_ID,
  description:
    "Starts a workflow that the administrators of this instance deployed. It runs in the background; the result contains its run id.",
  inputSchema: {
    type: "object",
    properties: {
      workflowId: { type: "string", description: "Which workflow" },
      parameters: { type: "object", description: "Its parameters; they must fit the workflow's own schema" },
    },
    required: ["workflowId"],
    additionalProperties: false,
  },
  // Administrators write workflows, so the tool may have any effect.
  riskLevel: "high",
  requiresConfirmation: false,
  idempotent: false,
};

const toolArguments = v.strictObject({
  workflowId: v.string(),
  parameters: v.optional(jsonObject, {}),
});

/** The tool with which an agent starts a workflow (open points 3), on behalf of the user of the turn. */
export const runWorkflowTool = defineAdapter({
  name: "tools/run-workflow",
  port: ports.tools,
  // Loaded late, because workflows depend on tools and this tool depends on workflows.
  needs: { workflows: later(workflowRuntime) },
  open({ workflows }, _options: void): ports.ToolSource {
    return {
      id: "run-workflow",
      list: async () => [runWorkflowDefinition],
      async call({ toolId, arguments: given, caller }, signal) {
        signal.throwIfAborted();
        if (toolId !== TOOL_ID) throw new ports.ToolNotFound(`There is no tool "${toolId}" here`);
        const parsed = v.safeParse(toolArguments, given);
        if (!parsed.success) {
          throw new ports.ToolArgumentsInvalid(
            parsed.issues.map((issue) => `${v.getDotPath(issue) ?? "(arguments)"}: expected ${issue.expected}`).join("; "),
          );
        }
        const { workflowId, parameters } = parsed.output;
        const runtime = workflows();
        const definition = runtime.catalogue.find(workflowId);
        if (!definition) return answered({ error: `There is no workflow "${workflowId}"` }, true);
        const depth = depthBelow(caller.workflowDepth);
        if (depth === undefined) return answered({ error: TOO_DEEP }, true);
        try {
          // If a workflow's node calls the tool, the secrets of that run must not be stored here either.
          const secrecy = caller.runId === undefined ? undefined : runtime.live.find(caller.runId)?.secrecy;
          const { runId } = await runtime.startRun({ definition, parameters, userId: caller.userId, depth, secrecy });
          return answered({ runId, workflowId, status: "started" }, false);
        } catch (error) {
          const refused = toServiceError(error);
          if (!ServiceError.is(refused)) throw error;
          return answered({ error: refused.message, ...refused.details }, true);
        }
      },
    };
  },
});

function answered(value: object, isError: boolean): ports.ToolResult {
  return { content: [{ type: "text", text: JSON.stringify(value) }], isError };
}
