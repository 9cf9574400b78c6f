import { auditActor, type ports, type RequestHead } from "@portico/core";
import { workflowErrors } from "../errors.ts";
import type { ExecutionGrant } from "../grants.ts";
import type { RunRecord } from "../runs/run-record.ts";
import { toStoreError } from "./store-error.ts";
import type { WorkflowServices } from "./workflow-services.ts";

/**
 * Whether a grant may use what a user gave to a run, such as its secret parameters. A grant without a user, and one of the instance's owner, may
 * do so for all users. Every grant may do so for a run without a user.
 */
export async function mayActAs(
  { identity }: WorkflowServices,
  userId: string | undefined,
  grant: Pick<ExecutionGrant, "userId">,
  signal: AbortSignal,
): Promise<boolean> {
  if (userId === undefined || grant.userId === undefined || grant.userId === userId) return true;
  return (await identity?.instanceOwner(signal)) === grant.userId;
}

const GRANT_HEADER = "x-execution-grant";

/**
 * A run that the holder of the grant in the header may decide about, and this holder. Throws `execution_grant_invalid` before anything is said of the run, and
 * `run_not_found`.
 */
export async function grantedRun(
  { grants, clock, runtime }: WorkflowServices,
  { id, runId }: { readonly id: string; readonly runId: string },
  head: RequestHead,
): Promise<{ readonly run: RunRecord; readonly grant: ExecutionGrant; readonly actor: ports.AuditActor }> {
  const presented = head.header(GRANT_HEADER);
  const grant = presented === undefined ? undefined : await grants.read(presented).catch(toStoreError);
  if (!grant || grant.workflowId !== id || grant.expiresAt <= clock.now()) throw workflowErrors.execution_grant_invalid();
  const run = await runtime.runs.findOf(id, runId).catch(toStoreError);
  // A grant under a binding is good for the runs of that binding.
  if (!run || (grant.bindingId !== undefined && run.bindingId !== grant.bindingId)) throw workflowErrors.run_not_found();
  return { run, grant, actor: auditActor({ role: "grant", userId: grant.userId, tokenId: grant.grantId }, head) };
}
