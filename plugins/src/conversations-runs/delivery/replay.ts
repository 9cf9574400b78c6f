import type { Channel, ports } from "@portico/core";
import type { queryChannel } from "../channel.ts";
import { OUTSTANDING_CHARACTERS } from "../limits.ts";
import { type ClientRequests, requestKey } from "../requests/client-requests.ts";
import { readTranscript } from "../turns/transcript.ts";
import { type Audiences, isAfter, type Listener } from "./audiences.ts";

/**
 * Sends a client what turns of an earlier life of this service, or of more than two minutes ago, told after the messages that it has: from
 * the transcripts, as long as they are kept, and to the same user and clientInstanceId alone.
 */
export async function replayWritten(
  given: {
    readonly log: ports.EventLog;
    readonly requests: ClientRequests;
    readonly channel: Pick<Channel<typeof queryChannel>, "send" | "drained">;
    readonly audiences: Pick<Audiences, "hears">;
  },
  listener: Listener,
  socketId: string,
  received: readonly (readonly [clientRequestId: string, seq: number])[],
): Promise<void> {
  for (const [clientRequestId, seq] of received) {
    const request = (await given.requests.find(requestKey(listener.userId, clientRequestId)))?.value;
    if (!request || request.clientInstanceId !== listener.clientInstanceId) continue;
    // One that waited has begun meanwhile: its audience hears it from its beginning.
    if (given.audiences.hears(listener, clientRequestId)) continue;
    let outstanding = 0;
    for await (const event of readTranscript(given.log, request.turnId)) {
      if (!isAfter(event, seq)) continue;
      given.channel.send(socketId, event);
      outstanding += JSON.stringify(event.data).length;
      if (outstanding <= OUTSTANDING_CHARACTERS) continue;
      if (!(await given.channel.drained(socketId))) return;
      outstanding = 0;
    }
  }
}
