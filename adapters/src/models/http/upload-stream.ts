import type { Readable } from "node:stream";

/** Progress of an upload. */
export interface UploadEvents {
  /** The receiver waits for the next bytes. */
  wants(): void;
  /** The receiver got bytes, or the end. */
  moves(): void;
  breaks(cause: Error): void;
}

/**
 * A request body as a web stream, read no sooner than the receiver takes it. Fails if the body is not as long as `length`: not every `fetch`
 * checks that.
 */
export function uploadStream(body: Readable, length: number | undefined, events: UploadEvents): ReadableStream<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let sent = 0;
  const next = async () => {
    const { value } = await chunks.next();
    sent += value?.length ?? 0;
    if (length !== undefined && (value ? sent > length : sent < length))
      throw new Error("The request's body is not as long as its declared length");
    return value;
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        events.wants();
        try {
          const chunk = await next();
          events.moves();
          if (chunk) controller.enqueue(chunk);
          else controller.close();
        } catch (cause) {
          controller.error(cause);
          events.breaks(cause as Error);
        }
      },
      cancel: () => void body.destroy(),
    },
    { highWaterMark: 0 },
  );
}
