import type { ports } from "@portico/core";
import { type ClientRequests, requestKey } from "../queries/client-requests.ts";
import { readTranscript } from "../turns/transcript.ts";
import type { TurnEvent } from "../turns/turn.ts";
import type { Listener } from "./listener.ts";

/**
 * The written and kept events of a turn, also of an earlier process, and from more than two minutes ago. Empty if the request is not of
 * this user and this client program.
 */
export async function* writtenEvents(
  { log, requests }: { readonly log: ports.EventLog; readonly requests: Pick<ClientRequests, "find"> },
  { userId, clientInstanceId }: Listener,
  clientRequestId: string,
): AsyncIterable<TurnEvent> {
  const request = (await requests.find(requestKey(userId, clientRequestId)))?.value;
  if (request?.clientInstanceId === clientInstanceId) yield* readTranscript(log, request.turnId);
}
