import { EventSource } from "eventsource";
import { SERVICE_TOKEN } from "./workflow-app.ts";

const EVENTS = ["started", "node_start", "node_complete", "node_error", "human_gate", "error", "complete"];

/** A stock EventSource client of a run's events, which connects again by itself. */
export interface EventSourceReader {
  /** The events in the order of their arrival. */
  readonly heard: readonly { readonly event: string; readonly data: any; readonly id: string }[];
  /** The `Last-Event-ID` of each of its requests; undefined for none. */
  readonly requests: readonly (string | undefined)[];
  /** The statuses of the streams that ended or failed; undefined for a stream that was answered with 200. */
  readonly ends: readonly (number | undefined)[];
  readonly isClosed: boolean;
  /** Breaks the connection, as a network does. */
  cut(): void;
  close(): void;
}

/** `url` is read for each connection, because a service that starts again has another address. */
export function openEventSource(url: () => string, runId: string): EventSourceReader {
  const heard: { event: string; data: unknown; id: string }[] = [];
  const requests: (string | undefined)[] = [];
  const ends: (number | undefined)[] = [];
  let line = new AbortController();
  const source = new EventSource(`http://workflows.local/api/workflow/events?runId=${runId}`, {
    fetch: (address, init) => {
      const { pathname, search } = new URL(address);
      requests.push(init.headers["Last-Event-ID"]);
      line = new AbortController();
      return fetch(url() + pathname + search, {
        ...init,
        headers: { ...init.headers, "x-workflow-service-token": SERVICE_TOKEN },
        signal: AbortSignal.any([...(init.signal ? [init.signal as AbortSignal] : []), line.signal]),
      });
    },
  });
  for (const name of EVENTS) {
    source.addEventListener(`workflow:${name}`, ({ data, lastEventId }) => {
      heard.push({ event: `workflow:${name}`, data: JSON.parse(data), id: lastEventId });
    });
  }
  source.addEventListener("error", ({ code }) => ends.push(code));
  return {
    ...{ heard, requests, ends },
    get isClosed() {
      return source.readyState === EventSource.CLOSED;
    },
    cut: () => line.abort(new TypeError("The connection is cut")),
    close: () => source.close(),
  };
}
