import { EventSourceParserStream } from "eventsource-parser/stream";

/** A reader of one stream of server-sent events. */
export interface EventSubscription {
  /** The ids of the events that were read so far; "" for an event without an id. */
  readonly ids: readonly string[];
  /** The times in milliseconds that the stream has named so far for connecting again. */
  readonly retries: readonly number[];
  /** The next event; undefined at the end of the stream. */
  next(): Promise<{ readonly event: string; readonly data: any } | undefined>;
  /** All to the end. */
  rest(): Promise<readonly { readonly event: string; readonly data: any }[]>;
  leave(): void;
}

/** Subscribe to server-sent events. Throws the status if the answer is not a stream. */
export async function subscribe(
  url: string,
  credentials: Readonly<Record<string, string>>,
  lastEventId?: string,
): Promise<EventSubscription> {
  const leaving = new AbortController();
  const headers = {
    ...credentials,
    ...(lastEventId !== undefined && { "last-event-id": lastEventId }),
  };
  const answer = await fetch(url, { headers, signal: leaving.signal });
  if (answer.status !== 200) throw new Error(`Events were answered with ${answer.status}: ${await answer.text()}`);
  const retries: number[] = [];
  const parser = new EventSourceParserStream({ onRetry: (ms) => retries.push(ms) });
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).pipeThrough(parser).getReader();
  const ids: string[] = [];
  const next = async () => {
    const { done, value } = await reader.read();
    if (done) return undefined;
    ids.push(value.id ?? "");
    return { event: value.event ?? "message", data: JSON.parse(value.data) as unknown };
  };
  return {
    ...{ next, ids, retries },
    async rest() {
      const all: { event: string; data: any }[] = [];
      for (let event = await next(); event; event = await next()) all.push(event);
      return all;
    },
    leave: () => leaving.abort(),
  };
}
