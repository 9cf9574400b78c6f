import type { Readable } from "node:stream";
import { type Exchange, type ports, readStream } from "@portico/core";
import type { ModelEvent, StreamReader, StreamWriter } from "@portico/core/model-protocols";
import { type CallRecord, codeOfBreak, type EndCode } from "./call-record.ts";
import { KEEP_ALIVE_MS } from "./limits.ts";
import { brokenStream } from "./relay.ts";

export interface StreamTranslation {
  readonly body: Readable;
  readonly reader: StreamReader;
  readonly writer: StreamWriter;
  readonly record: CallRecord;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly provider: ports.ModelProvider;
  readonly exchange: Exchange;
  readonly clock: ports.Clock;
}

const START: readonly ModelEvent[] = [{ type: "start" }];

/**
 * Convert a stream while it arrives. The head and the first event are sent immediately, because a reasoning model may be silent for minutes.
 * Then a keep-alive follows after every 15 s of silence, only between events. Resolves when the stream is sent or its reader has left.
 */
export function streamTranslation(stream: StreamTranslation): Promise<void> {
  const { body, reader, writer, record, provider, exchange, clock } = stream;
  record.opened();
  const out = exchange.respond(200, {
    ...stream.headers,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
  });
  return new Promise((resolve) => {
    let isOver = false;
    /** The text of this turn of the event loop. Many chunks arrive in one turn, so they share one write. */
    let pending = "";
    const flush = () => {
      if (isOver) return;
      next.refresh();
      if (!out.write(pending)) body.pause();
      pending = "";
    };
    const beat = () => {
      // A reader that does not keep up needs no keep-alive.
      if (!out.writableNeedDrain) out.write(writer.keepAlive);
      next = clock.after(KEEP_ALIVE_MS, beat);
    };
    let next = clock.after(KEEP_ALIVE_MS, beat);
    const finish = () => {
      isOver = true;
      next.cancel();
      resolve();
    };
    const write = (events: readonly ModelEvent[], code: EndCode = "upstream_error") => {
      if (isOver || events.length === 0) return;
      const text = writer.write(redactErrors(events, provider));
      recordUsage(record, events);
      const last = events.at(-1)!;
      if (last.type === "finish" || last.type === "error") {
        if (last.type === "error") record.broke(code);
        else record.ended();
        finish();
        out.end(pending + text);
        // Data after the end of an answer is ignored; a broken stream is aborted.
        if (last.type === "error") body.destroy();
        else readToEnd(body, clock);
      } else if (text !== "") {
        if (pending === "") queueMicrotask(flush);
        pending += text;
      }
    };
    out.on("drain", () => void (isOver || body.resume()));
    out.on("close", () => {
      if (!out.writableFinished) body.destroy();
      finish();
    });
    readStream(body, {
      chunk: (chunk) => write(reader.push(chunk)),
      end() {
        write(reader.end(), "upstream_broken");
        // Without this, a stream reader that returns no end would let the caller wait forever.
        if (!isOver)
          write(
            [{ type: "error", error: { kind: "upstream", message: `Provider "${provider.id}" ended its answer early` } }],
            "upstream_broken",
          );
      },
      broke(error) {
        try {
          write([{ type: "error", error: brokenStream(error, provider) }], codeOfBreak(error));
        } finally {
          // A provider that cannot even redact its error leaves the answer without an end.
          if (!isOver) out.destroy();
        }
      },
    });
    write(START);
  });
}

/** Lets go of a stream whose answer has ended. Some vendors keep it open (maximhq/bifrost#6784). */
function readToEnd(body: Readable, clock: ports.Clock): void {
  const late = clock.after(KEEP_ALIVE_MS, () => body.destroy());
  body.once("close", () => late.cancel());
  body.resume();
}

/** Records the token counts of events. */
export function recordUsage(record: CallRecord, events: readonly ModelEvent[]): void {
  for (const event of events) if ((event.type === "usage" || event.type === "start") && event.usage) record.used(event.usage);
}

/** Removes the provider's credential and address from errors inside an answer, because the upstream wrote them. */
export function redactErrors(
  events: readonly ModelEvent[],
  provider: Pick<ports.ModelProvider, "redact">,
): readonly ModelEvent[] {
  if (events.at(-1)?.type !== "error") return events;
  return events.map((event) =>
    event.type === "error" ? { ...event, error: { ...event.error, message: provider.redact(event.error.message) } } : event,
  );
}
