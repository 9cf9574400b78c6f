import { type Live, record, Secret } from "@portico/core";
import * as v from "valibot";
import type { FindToken, ServiceTokenRotation } from "./access/service-access.ts";
import { binding } from "./access/task-scope.ts";
import { FILE_BYTES, RUN_FILES_BYTES } from "./files/file-limits.ts";

const secret = v.instance(Secret);

const runtimeEntries = {
  /** The values that definitions read as `secrets.NAME`. They are masked in everything that is shown. */
  secrets: v.optional(record(v.string(), secret), {}),
  /**
   * Other values of these secrets, while the app is open: for the nodes that begin later. Names that `secrets` does not have are ignored.
   * Earlier values stay masked. Default: they never change.
   */
  secretsRotation: v.optional(
    v.custom<Live<Readonly<Record<string, Secret>>>>((value) => typeof value === "object" && value !== null),
  ),
  bindings: v.optional(v.array(binding), []),
  /**
   * Types of built-in kinds of nodes that adapters of the port `workflowNodes` replace, such as `agent`: for tests of definitions, which need
   * no agents then. Default: none.
   */
  replacedKinds: v.optional(v.array(v.picklist(["agent", "attachment", "workflow"]))),
  /** The address at which people reach the workflow service. Gates can have approval links only if it is set. Default: not set. */
  publicUrl: v.optional(v.string()),
  /** Whether callers with a grant to edit may write definitions. Default: false, because administrators deploy definitions. */
  editable: v.optional(v.boolean(), false),
  /** Maximum bytes of one file of a run, and of all files of a run. Default: 100 MiB and 1 GiB. */
  files: v.optional(
    v.strictObject({
      maxBytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), FILE_BYTES),
      maxRunBytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), RUN_FILES_BYTES),
    }),
    {},
  ),
  /** How long runs are kept after their end, in milliseconds; absent: for ever. */
  keepRunsMs: v.optional(v.pipe(v.number(), v.minValue(0))),
};

/** Options of the area. */
export const workflowServiceConfig = v.strictObject({
  ...runtimeEntries,
  /**
   * The service token (specification 5), or a function that finds it when the service opens. Without one, and without another adapter of the
   * port `serviceAccess`, the service answers every call with 503, `workflow_service_not_initialized`.
   */
  token: v.optional(v.union([secret, v.custom<FindToken>((value) => typeof value === "function")])),
  /** The next service tokens, while the app is open. Default: the token never changes. */
  tokenRotation: v.optional(v.custom<Live<ServiceTokenRotation>>((value) => typeof value === "object" && value !== null)),
});

/** Options of the runtime alone. */
export const workflowRuntimeConfig = v.strictObject(runtimeEntries);

export type WorkflowRuntimeOptions = v.InferInput<typeof workflowRuntimeConfig>;
