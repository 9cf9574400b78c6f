import { auditActor, auditWriter } from "@portico/core";
import { createOpenBackgroundTurns } from "../background/background-records.ts";
import { agentErrors } from "../errors.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/** Stops all turns of a user, queued ones included. They end as if the user had stopped them. */
export function stopTurns(services: ConversationServices): ConversationHandlers["stopTurns"] {
  const audit = auditWriter(services.audit, services.records);
  return async ({ params: { userId }, who, head }) => {
    if (who.role !== "owner") throw agentErrors.owner_required();
    const fact = { action: "user.stop-turns", object: userId, who: auditActor(who, head) };
    return { userId, stopped: await audit.attempt(fact, () => stopAll(services, userId)) };
  };
}

async function stopAll({ runtime, turns, records }: ConversationServices, userId: string): Promise<number> {
  const { requests, stopTurn } = runtime;
  const open = createOpenBackgroundTurns(records);
  let stopped = 0;
  for await (const turn of requests.openOf(userId)) {
    await stopTurn(turn);
    stopped++;
  }
  for await (const { runId } of open.ofUser(userId)) if (await turns.stop(runId, REASON)) stopped++;
  return stopped;
}

const REASON = "user_stop";
