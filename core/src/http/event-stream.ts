import type { Clock } from "../ports/clock.ts";
import type { EventStreams } from "./event-streams.ts";

/**
 * How long a source may be silent before its readers are sent a comment, which they pass over. Proxies and load balancers cut what is silent
 * for a minute, some after half of that; and a reader that is gone without a word is only noticed by writing to it.
 */
export const KEEP_ALIVE_MS = 15_000;

/** Of every event stream: nobody keeps it, and a proxy that would gather it into a buffer (nginx, by default) passes it on as it comes. */
export const EVENT_STREAM_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** What the answer does around its events. */
export interface EventStreamAnswer {
  /** The first event is asked for: the head is sent, or can be. */
  opened(): void;
  /** Told once: with an error code if the source broke, without one if it ended, its reader left, or the surface ends its streams. */
  ended(error?: string): void;
  /** Nobody listens to the source any more, though it has not ended. */
  left(reason: DOMException): void;
  /** The source broke: the error's code, and the JSON that is sent as a last event named `error`. */
  render(error: unknown): { readonly code: string; readonly body: string };
}

interface Around {
  readonly clock: Clock;
  readonly streams: EventStreams;
}

type Step = IteratorResult<{ readonly event: string; readonly data: unknown }>;

/**
 * Named events as a server-sent-event stream. One event is made per pull, so that a slow reader holds the source back, and a comment is
 * written only to a reader that waits; when the reader leaves, the source's `return` runs. A source that throws is told to the reader as an
 * event `error`, and then the stream breaks: it never looks like a normal end.
 */
export function eventStream(
  events: AsyncIterable<{ readonly event: string; readonly data: unknown }>,
  answer: EventStreamAnswer,
  { clock, streams }: Around,
): ReadableStream<Uint8Array> {
  const iterator = events[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let state: "new" | "open" | "broken" | "over" = "new";
  let leave = () => {};
  /** The source is asked once for each event, however many comments go out meanwhile. */
  let isAsked = false;
  let given: { readonly step: Step } | { readonly error: unknown } | undefined;
  let wake = () => {};

  const ask = async (): Promise<void> => {
    isAsked = true;
    try {
      given = { step: await iterator.next() };
    } catch (error) {
      given = { error };
    }
    wake();
  };
  /** Resolves when the source has given something, when the stream is over, or after so much silence. */
  const wait = () =>
    new Promise<void>((resolve) => {
      const timer = clock.after(KEEP_ALIVE_MS, resolve);
      wake = () => {
        timer.cancel();
        resolve();
      };
    });
  const close = (last: "over" | "broken", error?: string): void => {
    state = last;
    leave();
    wake();
    answer.ended(error);
  };
  /** The end of a stream whose source has not ended. */
  const abandon = async (reason: string): Promise<void> => {
    close("over");
    answer.left(new DOMException(reason, "AbortError"));
    await iterator.return?.();
  };
  const open = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    state = "open";
    answer.opened();
    leave = streams.add(() => {
      controller.close();
      // What breaks because nobody listens is nobody's fault.
      abandon("The service stops").catch(() => {});
    });
  };
  const isOver = () => state === "over";

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (state === "broken") {
          // Node writes at the end of the turn: breaking the stream in the same turn would take the last event with it.
          await new Promise((resolve) => setImmediate(resolve));
          controller.error(new Error("The source of the events broke"));
          return;
        }
        if (state === "new") open(controller);
        if (!isAsked && !isOver()) void ask();
        if (!given && !isOver()) await wait();
        if (isOver()) return;
        if (!given) {
          controller.enqueue(encoder.encode(": keep-alive\n\n"));
          return;
        }
        const found = given;
        given = undefined;
        isAsked = false;
        try {
          if ("error" in found) throw found.error;
          if (found.step.done) {
            close("over");
            controller.close();
            return;
          }
          const { event, data } = found.step.value;
          controller.enqueue(encoder.encode(frame(event, JSON.stringify(data))));
        } catch (error) {
          const { code, body } = answer.render(error);
          close("broken", code);
          controller.enqueue(encoder.encode(frame("error", body)));
        }
      },
      cancel: () => (state === "broken" ? undefined : abandon("The caller went away")),
    },
    { highWaterMark: 0 },
  );
}

function frame(event: string, json: string): string {
  return `event: ${event}\ndata: ${json}\n\n`;
}
