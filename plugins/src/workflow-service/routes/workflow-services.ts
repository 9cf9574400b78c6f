import type { Handlers, ports } from "@portico/core";
import type { workflowServiceContract } from "../contract.ts";
import type { DefinitionTests } from "../editing/definition-tests.ts";
import type { Grants } from "../grants.ts";
import type { serviceGuard } from "../guards.ts";
import type { WorkflowRuntime } from "../workflow-runtime.ts";

/** The services that the routes of this area use. */
export interface WorkflowServices {
  readonly runtime: WorkflowRuntime;
  readonly grants: Grants;
  readonly audit: ports.Audit | undefined;
  readonly log: ports.EventLog;
  readonly engine: ports.Engine;
  readonly sealing: ports.Sealing;
  /** Without users of an instance, only bindings that name no readers are readable. */
  readonly identity: ports.Identity | undefined;
  readonly clock: ports.Clock;
  readonly ids: ports.Ids;
  /** Undefined: the schedules of definitions start nothing. */
  readonly schedules: ports.Schedules | undefined;
  /** Undefined: cases of definitions cannot be executed. */
  readonly tests: DefinitionTests | undefined;
  /** Aborts when the app closes. */
  readonly closing: AbortSignal;
}

/** The handlers of this area, by route. */
export type WorkflowHandlers = Handlers<typeof workflowServiceContract, { readonly service: ReturnType<typeof serviceGuard> }>;
