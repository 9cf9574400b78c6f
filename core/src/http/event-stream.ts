/** What the answer does around its events. */
export interface EventStreamAnswer {
  /** The first event is asked for: the head is sent, or can be. */
  opened(): void;
  /** Told once: with an error code if the source broke, without one if it ended or its reader left. */
  ended(error?: string): void;
  /** The reader left before the source ended. */
  left(): void;
  /** The source broke: the error's code, and the JSON that is sent as a last event named `error`. */
  render(error: unknown): { readonly code: string; readonly body: string };
}

/**
 * Named events as a server-sent-event stream. One event is made per pull, so that a slow reader holds the source back; when the reader
 * leaves, the source's `return` runs. A source that throws is told to the reader as an event `error`, and then the stream breaks: it
 * never looks like a normal end.
 */
export function eventStream(
  events: AsyncIterable<{ readonly event: string; readonly data: unknown }>,
  answer: EventStreamAnswer,
): ReadableStream<Uint8Array> {
  const iterator = events[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let state: "new" | "open" | "broken" | "left" = "new";
  const isLeft = () => state === "left";
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (state === "broken") {
          // Node writes at the end of the turn: breaking the stream in the same turn would take the last event with it.
          await new Promise((resolve) => setImmediate(resolve));
          controller.error(new Error("The source of the events broke"));
          return;
        }
        if (state === "new") answer.opened();
        state = "open";
        try {
          const next = await iterator.next();
          if (isLeft()) return;
          if (next.done) {
            answer.ended();
            controller.close();
            return;
          }
          controller.enqueue(encoder.encode(frame(next.value.event, JSON.stringify(next.value.data))));
        } catch (error) {
          // What breaks because the reader left is nobody's fault.
          if (isLeft()) return;
          state = "broken";
          const { code, body } = answer.render(error);
          answer.ended(code);
          controller.enqueue(encoder.encode(frame("error", body)));
        }
      },
      async cancel() {
        state = "left";
        answer.ended();
        answer.left();
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

function frame(event: string, json: string): string {
  return `event: ${event}\ndata: ${json}\n\n`;
}
