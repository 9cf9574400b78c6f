import type { ports } from "@portico/core";
import { type ClientRequests, requestKey } from "../requests/client-requests.ts";
import { readTranscript } from "../turns/transcript.ts";
import type { TurnEvent } from "../turns/turn.ts";
import type { Listener } from "./listener.ts";

/**
 * What a turn told, as far as it is written and kept: also in an earlier process, and more than two minutes ago. Nothing where the request
 * is not of this user and this client program.
 */
export async function* writtenEvents(
  { log, requests }: { readonly log: ports.EventLog; readonly requests: Pick<ClientRequests, "find"> },
  { userId, clientInstanceId }: Listener,
  clientRequestId: string,
): AsyncIterable<TurnEvent> {
  const request = (await requests.find(requestKey(userId, clientRequestId)))?.value;
  if (request?.clientInstanceId === clientInstanceId) yield* readTranscript(log, request.turnId);
}
