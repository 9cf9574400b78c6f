import { jsonList } from "@portico/core";
import { agentErrors } from "../errors.ts";
import { RUNS_LIMIT } from "../limits.ts";
import { readFilter, readPositive } from "../pagination.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";
import { isRunId, visibleRun } from "./visible-run.ts";

/** Lists runs, the newest first: an owner sees all, a member its own. */
export function listRuns({ runtime: { runs } }: ConversationServices): ConversationHandlers["runs"] {
  return ({ query, who }) => {
    const limit = readPositive("limit", query.limit, RUNS_LIMIT);
    const agentId = readFilter("agent_id", query.agent_id);
    const delegatedBy = readFilter("delegated_by", query.delegated_by);
    const parentRunId = readFilter("parent_run_id", query.parent_run_id);
    if (who.role !== "owner" && who.userId === undefined) return { runs: [] };
    const filters = {
      ...(who.role !== "owner" && { user_id: who.userId }),
      ...(agentId !== undefined && { agent_id: agentId }),
      ...(delegatedBy !== undefined && { delegated_by: delegatedBy }),
      ...(parentRunId !== undefined && { parent_run_id: parentRunId }),
    };
    return jsonList("runs", runs.newest(filters, limit));
  };
}

/** Shows one run. */
export function readRun({ runtime: { runs } }: ConversationServices): ConversationHandlers["run"] {
  return async ({ params, who }) => {
    const run = await visibleRun(runs, who, params.id);
    if (!run) throw agentErrors.run_not_found(`Run not found: ${params.id}`);
    return run;
  };
}

/** Renames a run, archives it, or takes it back. */
export function changeRun({ clock, runtime: { runs } }: ConversationServices): ConversationHandlers["changeRun"] {
  return async ({ params, body, who }) => {
    const at = new Date(clock.now()).toISOString();
    const run =
      (await visibleRun(runs, who, params.id)) &&
      (await runs.change(params.id, ({ archived_at, ...rest }) => {
        const isArchived = body.archived ?? archived_at !== undefined;
        return {
          ...rest,
          ...(isArchived && { archived_at: archived_at ?? at }),
          ...(body.title !== undefined && { title: body.title }),
          updatedAt: at,
        };
      }));
    if (!run) throw agentErrors.run_not_found(`Run not found: ${params.id}`);
    return run;
  };
}

/** Returns the present activity of a run. */
export function runtimeState({ runtime: { runs } }: ConversationServices): ConversationHandlers["runtimeState"] {
  return async ({ params, who }) => {
    if (!isRunId(params.id)) throw agentErrors.invalid_run_id();
    const run = await visibleRun(runs, who, params.id);
    if (!run) throw agentErrors.run_state_not_found(`Run runtime state not found: ${params.id}`);
    return { run_id: run.run_id, agent_id: run.agent_id, status: run.status };
  };
}
