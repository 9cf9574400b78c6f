import { type FetchLike, STDIO_DEFAULT_MAX_BUFFER_SIZE } from "@modelcontextprotocol/client";

/** The library's own limit for programs. */
const MESSAGE_BYTES = STDIO_DEFAULT_MAX_BUFFER_SIZE;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/**
 * Requests with a limit: an answer ends early at a message that exceeds the limit for programs. Otherwise the library would buffer
 * the whole message.
 */
export const boundedFetch =
  (ask: FetchLike): FetchLike =>
  async (url, init) => {
    const response = await ask(url, init);
    if (!response.body) return response;
    const { status, statusText, headers } = response;
    // The library reads the whole body of an answer other than 200, for any content type.
    const isStream = status === 200 && /^text\/event-stream\b/i.test(headers.get("content-type") ?? "");
    return new Response(response.body.pipeThrough(boundMessages(isStream)), { status, statusText, headers });
  };

/** Passes bytes on. In a stream of events, an empty line ends a message. Any other answer is one message. */
function boundMessages(isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let message = 0;
  let line = 0;
  let last = 0;
  const endLine = (): void => {
    if (isStream && (line === 0 || (line === 1 && last === CARRIAGE_RETURN))) message = 0;
    line = 0;
  };
  return new TransformStream({
    transform(chunk, controller) {
      let from = 0;
      while (from < chunk.length) {
        const end = chunk.indexOf(LINE_FEED, from);
        const until = end === -1 ? chunk.length : end;
        message += until - from;
        line += until - from;
        if (message > MESSAGE_BYTES) return controller.error(new Error("The server's message is too large"));
        if (until > from) last = chunk[until - 1]!;
        if (end !== -1) endLine();
        from = until + 1;
      }
      controller.enqueue(chunk);
    },
  });
}
