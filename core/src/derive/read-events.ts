import { EventSourceParserStream } from "eventsource-parser/stream";
import type { EventOf, Events, RouteContract } from "../route.ts";
import { failureOf } from "./call-failed.ts";

/**
 * The declared events of a stream, read one by one. Leaving the loop ends the connection. Undeclared events are ignored, so that
 * a service can add new ones. Throws CallFailed on the final event `error` of a broken source, and the connection's error when it
 * is cut.
 */
export async function* readEvents<E extends Events>(
  route: RouteContract,
  response: Response,
  events: E,
): AsyncGenerator<EventOf<E>, void> {
  if (!response.body) return;
  // The stream types of the platform and of the library differ only in details that are unused here.
  const text = response.body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>);
  const reader = text.pipeThrough(new EventSourceParserStream()).getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const { event = "message", data, id } = next.value;
      const identified = id !== undefined && { id };
      if (Object.hasOwn(events, event)) yield { event, data: JSON.parse(data), ...identified } as EventOf<E>;
      else if (event === "error") throw failureOf(route, response.status, JSON.parse(data), response.headers);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
