import {
  auditActor,
  definePlugin,
  latestEnd,
  optional,
  ownerGuard,
  ownerScheme,
  ports,
  sessionIssuesSettings,
} from "@portico/core";
import * as v from "valibot";
import { executionGrantContract, executionGrantErrors } from "./execution-grants-contract.ts";
import { isDefinitionId } from "./definition/document-schema.ts";
import { createGrants } from "./access/grants.ts";
import { workflowRuntime } from "./workflow-runtime.ts";

/** The owner's execution grants, for presets that have an agent service beside the workflows. */
export const executionGrants = definePlugin({
  name: "execution-grants",
  summary: "Execution grants, with which one run of a workflow is started.",
  config: v.strictObject(sessionIssuesSettings),
  needs: {
    runtime: workflowRuntime,
    signing: ports.signing,
    identity: ports.identity,
    clock: ports.clock,
    ids: ports.ids,
    audit: optional(ports.audit),
  },
  contract: executionGrantContract,
  security: { owner: ownerScheme },
  guards: ({ identity }) => ({ owner: ownerGuard(identity, executionGrantErrors) }),
  setup({ runtime, audit, ...given }, { sessionIssuesMs: mostMs }) {
    const grants = createGrants(given);
    return {
      async issue({ body, who, head, fail }) {
        const { workflowId, bindingId, ttlMs, edits, userId = who.userId } = body;
        if (edits && !isDefinitionId(workflowId)) throw fail.invalid_workflow_id();
        if (!edits && !runtime.catalogue.find(workflowId)) throw fail.workflow_not_found();
        const binding = runtime.bindings.find(({ id }) => id === bindingId);
        if (bindingId !== undefined && binding?.workflowId !== workflowId) throw fail.binding_not_found();
        try {
          const until = latestEnd(who, { now: given.clock.now(), mostMs });
          const { executionGrantId, grant } = await grants.issue({ workflowId, userId, bindingId, edits, ttlMs, until });
          // A grant is not stored. It exists when it is returned, after this.
          const action = edits ? "editing-grant.issue" : "execution-grant.issue";
          await audit?.record({ action, object: grant.grantId, who: auditActor(who, head) });
          return { executionGrantId, workflowId, expiresAt: new Date(grant.expiresAt).toISOString() };
        } catch (error) {
          throw error instanceof ports.SigningUnavailable ? fail.signing_unavailable(undefined, undefined, error) : error;
        }
      },
    };
  },
});
