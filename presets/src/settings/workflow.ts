import { filePath, fromEnv, record, secret } from "@portico/core";
import { FILE_BYTES, RUN_FILES_BYTES } from "@portico/plugins/workflow-service/file-limits";
import * as v from "valibot";
import { documentsSchema } from "./documents.ts";
import { keeping } from "./keeping.ts";
import { listenSchema, publicUrlSchema } from "./listen.ts";
import { keySecret, name, origin, text } from "./scalar.ts";

const byteCount = () => v.pipe(v.number(), v.integer(), v.minValue(1));

const bindingSchema = v.strictObject({
  id: v.pipe(name(), v.description("Id of the binding.")),
  workflowId: v.pipe(text(), v.description("Id of the bound workflow.")),
  boardId: v.optional(v.pipe(text(), v.description("Id of the board that its runs belong to."))),
  taskId: v.optional(v.pipe(text(), v.description("Id of the task that its runs belong to."))),
  readers: v.optional(
    v.pipe(v.array(text()), v.description("Users who may read its runs. Default: all holders of the service token.")),
  ),
});

/** The workflow service (open points 1 and 8). */
export const workflowSchema = v.optional(
  v.strictObject({
    listen: listenSchema("WORKFLOW"),
    publicUrl: publicUrlSchema("WORKFLOW"),
    token: v.optional(
      fromEnv(
        "WORKFLOW_SERVICE_TOKEN",
        v.pipe(keySecret(), v.description("The service token. If it is not set, the first start creates it.")),
      ),
    ),
    definitionsDir: v.optional(
      fromEnv(
        "PORTICO_DEFINITIONS_DIR",
        v.pipe(
          filePath(),
          v.description("Folder of the workflow definitions. The service writes to it only if `workflow.editable` is on."),
        ),
      ),
      "workflows",
    ),
    editable: v.optional(
      fromEnv(
        "PORTICO_WORKFLOW_EDITABLE",
        v.pipe(
          v.boolean(),
          v.description(
            "Whether definitions can be written by calls and in the web console, with a grant to edit. Otherwise only administrators deploy them.",
          ),
        ),
      ),
      false,
    ),
    documents: documentsSchema("WORKFLOW", "workflow definitions", "workflow.definitionsDir"),
    keepRuns: v.optional(
      fromEnv(
        "PORTICO_WORKFLOW_KEEP_RUNS",
        v.pipe(keeping(), v.description("How long runs are kept in the history after their end.")),
      ),
      "90d",
    ),
    files: v.optional(
      v.strictObject({
        maxBytes: v.optional(
          fromEnv("PORTICO_WORKFLOW_FILES_MAX_BYTES", v.pipe(byteCount(), v.description("Maximum bytes of one file of a run."))),
          FILE_BYTES,
        ),
        maxRunBytes: v.optional(
          fromEnv(
            "PORTICO_WORKFLOW_FILES_MAX_RUN_BYTES",
            v.pipe(byteCount(), v.description("Maximum bytes of all files of a run.")),
          ),
          RUN_FILES_BYTES,
        ),
      }),
      {},
    ),
    allowedOrigins: v.optional(
      fromEnv(
        "PORTICO_WORKFLOW_ALLOWED_ORIGINS",
        v.pipe(
          v.array(origin()),
          v.description("Origins of web pages that may call the workflow service, in addition to its own."),
        ),
      ),
      [],
    ),
    bindings: v.optional(
      fromEnv("PORTICO_WORKFLOW_BINDINGS", v.pipe(v.array(bindingSchema), v.description("Workflows bound to boards and tasks."))),
      [],
    ),
    secrets: v.optional(
      fromEnv(
        "PORTICO_WORKFLOW_SECRETS",
        v.pipe(
          record(v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, "a name of letters, digits and _")), secret()),
          v.description("Secrets that definitions read as `secrets.NAME`; masked in all output."),
        ),
      ),
      {},
    ),
    sandbox: v.optional(
      v.strictObject({
        threads: v.optional(
          fromEnv(
            "PORTICO_WORKFLOW_SANDBOX_THREADS",
            v.pipe(
              v.number(),
              v.integer(),
              v.minValue(1),
              v.maxValue(256),
              v.description(
                "Maximum number of threads for the scripts of `code` nodes, and as many for JSONata. Up to eight more execute slow ones. Default: one for each processor.",
              ),
            ),
          ),
        ),
      }),
      {},
    ),
    http: v.optional(
      v.strictObject({
        allow: v.optional(
          fromEnv(
            "PORTICO_WORKFLOW_HTTP_ALLOW",
            v.pipe(v.array(text()), v.description("Private hosts and addresses that `http` nodes may call.")),
          ),
          [],
        ),
      }),
      {},
    ),
  }),
  {},
);
