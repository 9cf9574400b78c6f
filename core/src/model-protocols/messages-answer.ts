import { Readable } from "node:stream";
import type { ModelAnswer } from "../ports/models.ts";
import { errorBody, errorStatus, upstreamFailure } from "./errors.ts";
import { writeExactly } from "./json.ts";
import type { ModelError, ModelEvent } from "./model-events.ts";
import { AnswerFailed, writeMessage } from "./write-answer.ts";
import { writeMessagesStream } from "./write-messages-stream.ts";

/** Batches of events, in the order of `ModelEvent`. The last event is `finish` or `error`. */
export type ModelEvents = AsyncIterable<readonly ModelEvent[]>;

/** What an answer of the Messages protocol says of itself. */
export interface MessagesAnswerOptions {
  /** The id of the message, such as `msg_1`. */
  readonly id: string;
  /** The name of the model, as the caller wrote it. */
  readonly model: string;
  /** Whether the request asked for a stream. */
  readonly isStream: boolean;
  /** Further headers of the answer, by lowercase name. */
  readonly headers?: ModelAnswer["headers"];
}

/**
 * Writes events as an answer of the Messages protocol, for a provider with a protocol of its own. `events` gets a signal that aborts when
 * `signal` does and when the reader leaves. It must end then. Resolves at the first event that says more than that the answer began, so that
 * an error before any content becomes the status of the answer. Rejects as `events` throws before that. What it throws later breaks the
 * body.
 */
export async function messagesAnswer(
  events: (signal: AbortSignal) => ModelEvents,
  options: MessagesAnswerOptions,
  signal: AbortSignal,
): Promise<ModelAnswer> {
  const left = new AbortController();
  const batches = events(AbortSignal.any([signal, left.signal]))[Symbol.asyncIterator]();
  const begun: ModelEvent[] = [];
  while (!begun.some(({ type }) => type !== "start")) {
    const next = await batches.next();
    if (next.done) begun.push(upstreamFailure(ENDED));
    else begun.push(...next.value);
  }
  const failure = begun.find((event) => event.type !== "start");
  if (failure?.type === "error") {
    await leave(batches);
    return refusal(failure.error, options.headers);
  }
  if (!options.isStream) return wholeAnswer(await gathered(begun, batches), options);
  const text = Readable.from(streamed(begun, batches, options), { objectMode: false });
  // Also a reader that leaves before its first read: then the body has not begun to read the events.
  text.once("close", () => {
    left.abort();
    leave(batches).catch(() => {});
  });
  // An error without a listener ends the process. Readers of the answer add their own.
  text.on("error", () => {});
  return { status: 200, headers: { ...options.headers, "content-type": "text/event-stream; charset=utf-8" }, body: text };
}

const ENDED = "The provider ended its answer early";

/** The answer of a provider that refuses a call. */
export function refusal(error: ModelError, headers: ModelAnswer["headers"] = {}, status?: number): ModelAnswer {
  return whole(status ?? errorStatus("messages", error.kind), JSON.stringify(errorBody("messages", error)), headers);
}

function isOver(event: ModelEvent | undefined): boolean {
  return event?.type === "finish" || event?.type === "error";
}

async function gathered(begun: readonly ModelEvent[], batches: AsyncIterator<readonly ModelEvent[]>): Promise<ModelEvent[]> {
  const all = [...begun];
  while (!isOver(all.at(-1))) {
    const next = await batches.next();
    if (next.done) all.push(upstreamFailure(ENDED));
    else all.push(...next.value);
  }
  await leave(batches);
  return all;
}

function wholeAnswer(events: readonly ModelEvent[], options: MessagesAnswerOptions): ModelAnswer {
  try {
    return whole(200, writeExactly(writeMessage(events, options)), options.headers ?? {});
  } catch (error) {
    if (error instanceof AnswerFailed) return refusal(error.error, options.headers);
    throw error;
  }
}

function whole(status: number, text: string, headers: ModelAnswer["headers"]): ModelAnswer {
  const bytes = Buffer.from(text);
  return {
    status,
    headers: { ...headers, "content-type": "application/json; charset=utf-8", "content-length": String(bytes.length) },
    body: Readable.from([bytes], { objectMode: false }),
    whole: bytes,
  };
}

async function* streamed(
  begun: readonly ModelEvent[],
  batches: AsyncIterator<readonly ModelEvent[]>,
  options: MessagesAnswerOptions,
): AsyncGenerator<Buffer> {
  const writer = writeMessagesStream(options);
  let events = begun;
  for (;;) {
    const text = writer.write(events);
    if (text !== "") yield Buffer.from(text);
    if (isOver(events.at(-1))) return;
    const next = await batches.next();
    events = next.done ? [upstreamFailure(ENDED)] : next.value;
  }
}

/** Lets the source of the events close what it opened. */
async function leave(batches: AsyncIterator<readonly ModelEvent[]>): Promise<void> {
  await batches.return?.();
}
