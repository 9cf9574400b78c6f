import type { InferOutput } from "valibot";
import type { queryChannel } from "../channel.ts";
import { runOfSession } from "../conversations/conversations.ts";
import { type ClientRequests, requestKey } from "../queries/client-requests.ts";
import type { Runs } from "../runs/runs.ts";

type Named = InferOutput<(typeof queryChannel)["receives"]["query:abort"]>;

/** What an abort stops: one submission, or whatever turn of a session executes now. */
export interface MeantTurn {
  readonly sessionId: string;
  readonly clientRequestId?: string | undefined;
}

/**
 * The turn of this user that an abort names, whether it has begun or not. Undefined if no turn has all of the identifiers that the abort names:
 * a client with a wrong picture of the service must not stop another turn (open points 7 and 15).
 */
export async function findMeantTurn(
  { requests, runs }: { readonly requests: Pick<ClientRequests, "find">; readonly runs: Pick<Runs, "find"> },
  userId: string,
  { sessionId, clientRequestId, conversationId, agentId }: Named,
): Promise<MeantTurn | undefined> {
  const found = clientRequestId === undefined ? await ofSession() : await ofRequest(clientRequestId);
  if (!found || found.userId !== userId) return undefined;
  const isMeant = fits(sessionId, found.sessionId) && fits(conversationId, found.conversationId) && fits(agentId, found.agentId);
  return isMeant ? { sessionId: found.sessionId, clientRequestId } : undefined;

  async function ofRequest(id: string) {
    return (await requests.find(requestKey(userId, id)))?.value;
  }

  async function ofSession() {
    const runId = sessionId === undefined ? undefined : runOfSession(sessionId);
    const run = runId === undefined ? undefined : (await runs.find(runId))?.value;
    return run && { userId: run.user_id, agentId: run.agent_id, conversationId: run.conversation_id, sessionId: sessionId! };
  }
}

const fits = (named: string | undefined, found: string | undefined): boolean => named === undefined || named === found;
