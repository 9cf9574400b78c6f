import { agentErrors } from "../errors.ts";
import { TRACES_LIMIT, TRACES_LIMIT_MAXIMUM } from "../limits.ts";
import { readLimit, readOffset } from "../pagination.ts";
import { readTraces } from "../runs/traces.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";
import { visibleRun } from "./visible-run.ts";

/** Shows how a run's turns spent their time. A trace has no content, so the owner sees those of all users. */
export function readTrace({ log, runtime: { runs } }: ConversationServices): ConversationHandlers["trace"] {
  return async ({ params, query, who, signal }) => {
    const offset = readOffset("offset", query.offset, 0);
    const limit = readLimit(query.limit, TRACES_LIMIT, TRACES_LIMIT_MAXIMUM);
    const run = await visibleRun(runs, who, params.id);
    if (!run) throw agentErrors.run_not_found(`Run not found: ${params.id}`);
    return readTraces(log, run.run_id, { offset, limit, signal });
  };
}
