import { auditActor, auditWriter } from "@portico/core";
import { openFailedTurns } from "../background/failed-turns.ts";
import { agentErrors } from "../errors.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";
import { visibleRun } from "./visible-run.ts";

/** Runs a failed background run again, in a new run. A second call for the same run starts nothing, and answers with the same new run. */
export function runAgain(services: ConversationServices): ConversationHandlers["runAgain"] {
  const { records, turns, runtime } = services;
  const { runs } = runtime;
  const audit = auditWriter(services.audit, records);
  const failedTurns = openFailedTurns(records);
  return async ({ params: { id }, who, head }) => {
    if (who.role !== "owner") throw agentErrors.owner_required();
    const run = await visibleRun(runs, who, id);
    if (!run) throw agentErrors.run_not_found(`Run not found: ${id}`);
    if (run.again_run_id !== undefined) return { runId: run.again_run_id };
    const failed = run.status === "failed" ? await failedTurns.get(id) : undefined;
    if (!failed) throw agentErrors.run_not_repeatable();
    const { runId: _runId, ...turn } = failed.value;
    return audit.attempt({ action: "run.again", object: id, who: auditActor(who, head) }, async () => {
      const { runId } = await turns.start({ ...turn, againOf: id, key: `again:${id}` });
      await runs.change(id, (found) => ({ ...found, again_run_id: runId }));
      return { runId };
    });
  };
}
