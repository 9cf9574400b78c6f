import { fromEnv, keeping, type Live, record, Secret, secret } from "@portico/core";
import * as v from "valibot";
import type { FindToken, ServiceTokenRotation } from "./access/service-access.ts";
import { binding } from "./access/task-scope.ts";
import { FILE_BYTES, RUN_FILES_BYTES } from "./files/file-limits.ts";

const byteCount = () => v.pipe(v.number(), v.integer(), v.minValue(1));

/** Options that presets have as settings of workflows. */
export const workflowServiceSettings = {
  editable: v.optional(
    fromEnv(
      "PORTICO_WORKFLOW_EDITABLE",
      v.boolean(),
      "Whether definitions can be written by calls and in the web console, with a grant to edit. Otherwise only administrators deploy them.",
    ),
    false,
  ),
  keepRuns: v.optional(
    fromEnv("PORTICO_WORKFLOW_KEEP_RUNS", keeping(), "How long runs are kept in the history after their end."),
    "forever",
  ),
  files: v.optional(
    v.strictObject({
      maxBytes: v.optional(
        fromEnv("PORTICO_WORKFLOW_FILES_MAX_BYTES", byteCount(), "Maximum bytes of one file of a run."),
        FILE_BYTES,
      ),
      maxRunBytes: v.optional(
        fromEnv("PORTICO_WORKFLOW_FILES_MAX_RUN_BYTES", byteCount(), "Maximum bytes of all files of a run."),
        RUN_FILES_BYTES,
      ),
    }),
    {},
  ),
  bindings: v.optional(fromEnv("PORTICO_WORKFLOW_BINDINGS", v.array(binding), "Workflows bound to boards and tasks."), []),
  secrets: v.optional(
    fromEnv(
      "PORTICO_WORKFLOW_SECRETS",
      record(v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, "a name of letters, digits and _")), secret()),
      "Secrets that definitions read as `secrets.NAME`; masked in all output.",
    ),
    {},
  ),
};

const runtimeEntries = {
  ...workflowServiceSettings,
  /**
   * Other values of these secrets, while the app is open: for the nodes that begin later. Names that `secrets` does not have are ignored.
   * Earlier values stay masked. Default: they never change.
   */
  secretsRotation: v.optional(
    v.custom<Live<Readonly<Record<string, Secret>>>>((value) => typeof value === "object" && value !== null),
  ),
  /**
   * Types of built-in kinds of nodes that adapters of the port `workflowNodes` replace, such as `agent`: for tests of definitions, which need
   * no agents then. Default: none.
   */
  replacedKinds: v.optional(v.array(v.picklist(["agent", "attachment", "workflow"]))),
  /** The address at which people reach the workflow service. Gates can have approval links only if it is set. Default: not set. */
  publicUrl: v.optional(v.string()),
};

/** Options of the area. */
export const workflowServiceConfig = v.strictObject({
  ...runtimeEntries,
  /**
   * The service token (specification 5), or a function that finds it when the service opens. Without one, and without another adapter of the
   * port `serviceAccess`, the service answers every call with 503, `workflow_service_not_initialized`.
   */
  token: v.optional(v.union([v.instance(Secret), v.custom<FindToken>((value) => typeof value === "function")])),
  /** The next service tokens, while the app is open. Default: the token never changes. */
  tokenRotation: v.optional(v.custom<Live<ServiceTokenRotation>>((value) => typeof value === "object" && value !== null)),
});

/** Options of the runtime alone. */
export const workflowRuntimeConfig = v.strictObject(runtimeEntries);

/** Options of the runtime alone, as callers write them. */
export type WorkflowRuntimeOptions = v.InferInput<typeof workflowRuntimeConfig>;
