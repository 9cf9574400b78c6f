import { agentErrors } from "../errors.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Stops all turns of a user, queued ones included. They end as if the user had stopped them. */
export function stopTurns({ runtime, turns }: ConversationServices): ConversationHandlers["stopTurns"] {
  const { requests, runs, stopTurn } = runtime;
  return async ({ params: { userId }, who }) => {
    if (who.role !== "owner") throw agentErrors.owner_required();
    let stopped = 0;
    for await (const turn of requests.openOf(userId)) {
      await stopTurn(turn);
      stopped++;
    }
    for await (const runIds of runs.oldest({ userId })) {
      for (const runId of runIds) {
        const run = (await runs.find(runId))?.value;
        if (run?.background && run.status === "running" && (await turns.stop(runId, "user_stop"))) stopped++;
      }
    }
    return { userId, stopped };
  };
}
