import { filePath, fromEnv, keySecret } from "@portico/core";
import { workflowServiceSettings } from "@portico/plugins/workflow-service/config";
import * as v from "valibot";
import { documentsSchema } from "./documents.ts";
import { listenSchema, origin, publicUrlSchema, text } from "./listen.ts";

/** The workflow service (open points 1 and 8). */
export const workflowSchema = v.optional(
  v.strictObject({
    listen: listenSchema("WORKFLOW"),
    publicUrl: publicUrlSchema("WORKFLOW"),
    token: v.optional(
      fromEnv("WORKFLOW_SERVICE_TOKEN", keySecret(), "The service token. If it is not set, the first start creates it."),
    ),
    definitionsDir: v.optional(
      fromEnv(
        "PORTICO_DEFINITIONS_DIR",
        filePath(),
        "Folder of the workflow definitions. The service writes to it only if `workflow.editable` is on.",
      ),
      "workflows",
    ),
    documents: documentsSchema("WORKFLOW", "workflow definitions", "workflow.definitionsDir"),
    ...workflowServiceSettings,
    mcp: v.optional(
      fromEnv(
        "PORTICO_WORKFLOW_MCP",
        v.boolean(),
        "Whether workflows whose definition says `mcp: true` are tools of an MCP server at `/mcp`.",
      ),
      false,
    ),
    // A service that its administrators only configure must not fill its disk.
    keepRuns: v.optional(workflowServiceSettings.keepRuns.wrapped, "90d"),
    allowedOrigins: v.optional(
      fromEnv(
        "PORTICO_WORKFLOW_ALLOWED_ORIGINS",
        v.array(origin()),
        "Origins of web pages that may call the workflow service, in addition to its own.",
      ),
      [],
    ),
    sandbox: v.optional(
      v.strictObject({
        threads: v.optional(
          fromEnv(
            "PORTICO_WORKFLOW_SANDBOX_THREADS",
            v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(256)),
            "Maximum number of threads for the scripts of `code` nodes, and as many for JSONata. Up to eight more execute slow ones. Default: one for each processor.",
          ),
        ),
      }),
      {},
    ),
    http: v.optional(
      v.strictObject({
        allow: v.optional(
          fromEnv("PORTICO_WORKFLOW_HTTP_ALLOW", v.array(text()), "Private hosts and addresses that `http` nodes may call."),
          [],
        ),
      }),
      {},
    ),
  }),
  {},
);
