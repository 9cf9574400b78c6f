import { EventSourceParserStream } from "eventsource-parser/stream";
import type { EventOf, Events, RouteContract } from "../route.ts";
import { failureOf } from "./call-failed.ts";

/**
 * The declared events of a stream, one by one as they are asked for; leaving the loop ends the connection. Events that the contract does
 * not declare are passed over, so that a service can learn new ones. Throws CallFailed on the event `error` that a broken source sends
 * last, and what the connection throws when it is cut.
 */
export async function* readEvents<E extends Events>(
  route: RouteContract,
  response: Response,
  events: E,
): AsyncGenerator<EventOf<E>, void> {
  if (!response.body) return;
  // The stream types of the platform and of the library differ in nothing that matters here.
  const text = response.body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>);
  const reader = text.pipeThrough(new EventSourceParserStream()).getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const { event = "message", data } = next.value;
      if (Object.hasOwn(events, event)) yield { event, data: JSON.parse(data) } as EventOf<E>;
      else if (event === "error") throw failureOf(route, response.status, JSON.parse(data), response.headers);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
