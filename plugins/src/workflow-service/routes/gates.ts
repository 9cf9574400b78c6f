import type { ListLook } from "@portico/core/kit";
import { FOLLOWED_GATES, RECONNECT_MS } from "../contracts/limits.ts";
import { runSummary } from "./history.ts";
import { findRuns } from "./search.ts";
import { readerOf, type WorkflowHandlers, type WorkflowServices } from "./workflow-services.ts";

const WAITING = { status: "waiting_human" } as const;

/** Lists the gates that wait, with what a person needs to decide: those of the newest runs first. */
export function listGates(services: WorkflowServices): WorkflowHandlers["gates"] {
  const { catalogue } = services.runtime;
  return async ({ query, signal }) => {
    const { items, next } = await findRuns(services, WAITING, { ...query, canRead: await readerOf(services, signal) });
    const gates = items.flatMap((run) => {
      const { workflowId, gates: open = [] } = run;
      const { runId, startedAt, workflowBindingId, boardId, taskId, userId, parentRunId, schedule } = runSummary(run, undefined);
      const ownership = { workflowBindingId, boardId, taskId, userId, parentRunId, schedule };
      const workflowName = catalogue.find(workflowId)?.name ?? run.name;
      return open.map((gate) => ({ workflowId, workflowName, runId, startedAt, ...ownership, gate }));
    });
    return { gates, ...(next !== undefined && { next }) };
  };
}

/** Tells a caller when the gates that wait change. */
export function followGates(services: WorkflowServices): WorkflowHandlers["gateChanges"] {
  const { gateChanges } = services.runtime;
  return ({ head, signal, say, fail }) => {
    if (gateChanges.isFull()) throw fail.too_many_readers();
    const look = async (): Promise<ListLook> => {
      const canRead = await readerOf(services, signal);
      const { items, next } = await findRuns(services, WAITING, { limit: FOLLOWED_GATES, canRead });
      // A node that is repeated waits again.
      const ids = items.flatMap(({ runId, gates = [] }) =>
        gates.map(({ nodeId, requestedAt }) => `${runId}/${nodeId} ${requestedAt}`),
      );
      return { ids, hasMore: next !== undefined };
    };
    return (async function* () {
      yield { retryMs: RECONNECT_MS };
      const until = AbortSignal.any([signal, services.closing]);
      for await (const { id, count, hasMore } of gateChanges.follow({ look, known: head.header("last-event-id"), signal: until }))
        yield { ...say["workflow:gates_changed"]({ waiting: count, hasMore }), id };
    })();
  };
}
