import type { Channel, ports } from "@portico/core";
import type { queryChannel } from "../channel.ts";
import { REPLAY_PAGE } from "../limits.ts";
import { type ClientRequests, requestKey } from "../requests/client-requests.ts";
import { readTranscript } from "../turns/transcript.ts";
import { isAfter, type Listener } from "./audiences.ts";

/**
 * Sends a client what turns of an earlier life of this service, or of more than two minutes ago, told after the messages that it has: from
 * the transcripts, as long as they are kept, and to the same user and clientInstanceId alone.
 */
export async function replayWritten(
  given: {
    readonly log: ports.EventLog;
    readonly requests: ClientRequests;
    readonly channel: Pick<Channel<typeof queryChannel>, "send" | "drained">;
  },
  listener: Listener,
  socketId: string,
  received: Readonly<Record<string, number>>,
): Promise<void> {
  for (const [clientRequestId, seq] of Object.entries(received)) {
    const request = (await given.requests.find(requestKey(listener.userId, clientRequestId)))?.value;
    if (!request || request.clientInstanceId !== listener.clientInstanceId) continue;
    let sent = 0;
    for await (const event of readTranscript(given.log, request.turnId)) {
      if (!isAfter(event, seq)) continue;
      given.channel.send(socketId, event);
      if (++sent % REPLAY_PAGE === 0 && !(await given.channel.drained(socketId))) return;
    }
  }
}
