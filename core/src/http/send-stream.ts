import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Exchange } from "../route.ts";

export interface StreamHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** The answer has no body, and nothing is opened: to HEAD, or 304. */
  readonly isBodiless: boolean;
  /** Aborts when the reader leaves. */
  readonly signal: AbortSignal;
}

/**
 * Answer an exchange with a stream, which `open` opens: with back pressure, and destroyed when the reader leaves. Rejects with what `open` throws,
 * before anything is sent, and with what breaks the stream, which cuts the connection. A reader who leaves is no error.
 */
export async function sendStream(exchange: Exchange, head: StreamHead, open: () => Promise<Readable>): Promise<void> {
  const { status, headers, isBodiless, signal } = head;
  if (isBodiless) return void exchange.respond(status, headers).end();
  const stream = await open();
  if (signal.aborted) return void stream.destroy();
  try {
    await pipeline(stream, exchange.respond(status, headers));
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    stream.destroy();
  }
}
