import { hash } from "node:crypto";
import { ports, writeAgain } from "@portico/core";
import { agentErrors } from "../errors.ts";
import { STEERING_MESSAGES } from "../limits.ts";
import { isOpenRequest, requestKey, type SteeringMessage } from "../requests/client-requests.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

/**
 * Keeps a message for the agent of a turn that goes on: it is told before its next model call. The message is durable in the record of the turn's
 * submission, so that the commit of the turn's end knows whether the agent was told.
 */
export function steerQuery(services: ConversationServices): ConversationHandlers["steer"] {
  const { requests, running } = services.runtime;
  return async ({ params: { clientRequestId }, body: { messageId, text }, who: { userId } }) => {
    if (userId === undefined) throw agentErrors.user_required();
    const key = requestKey(userId, clientRequestId);
    const digest = hash("sha256", text);
    const { turnId, ...steered } = await writeAgain(async () => {
      const found = await requests.find(key);
      if (!found) throw agentErrors.request_not_found();
      const { turnId, agentId, stop, steering = [] } = found.value;
      const known = steering.find(({ id }) => id === messageId);
      if (known && known.digest !== digest) throw agentErrors.CLIENT_REQUEST_BODY_MISMATCH();
      if (known) return { turnId, status: statusOf(known), duplicate: true as const };
      if (!isOpenRequest(found.value) || stop !== undefined) throw agentErrors.turn_ended();
      if (steering.length >= STEERING_MESSAGES) throw agentErrors.too_many_messages();
      if (!(await isSteerable(services, agentId))) throw agentErrors.steering_unsupported();
      const message = { id: messageId, digest, text };
      await requests.put(key, { ...found.value, steering: [...steering, message] }, found.version);
      return { turnId, status: "pending" as const };
    }).catch((error: unknown) => {
      const isUnsure = error instanceof ports.RecordConflict || error instanceof ports.RecordsUnavailable;
      throw isUnsure ? agentErrors.registry_unavailable(undefined, undefined, error) : error;
    });
    if (steered.status === "pending") running.steer(turnId);
    return { ok: true, clientRequestId, messageId, ...steered };
  };
}

function statusOf({ isTaken }: SteeringMessage): "pending" | "taken" | "not_taken" {
  if (isTaken === undefined) return "pending";
  return isTaken ? "taken" : "not_taken";
}

async function isSteerable({ agents, agentEngines }: ConversationServices, agentId: string): Promise<boolean> {
  const engine = (await agents.find(agentId))?.definition.engine;
  return agentEngines.find(({ id }) => id === engine)?.canSteer === true;
}
