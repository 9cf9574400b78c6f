import { Readable } from "node:stream";
import { passStream, type ports } from "@portico/core";
import { createDecoder } from "@portico/core/model-protocols";
import { abortError } from "../abort-error.ts";

/** Maximum bytes of a request, as sent and decoded: as many as the model proxy accepts. */
const REQUEST_BYTES = 256 * 1024 * 1024;

/** Thrown for a request that cannot be read. Its message says why. */
export class RequestUnreadable extends Error {
  override readonly name = "RequestUnreadable";
  readonly isTooLarge: boolean;

  constructor(message: string, isTooLarge = false) {
    super(message);
    this.isTooLarge = isTooLarge;
  }
}

/**
 * The decoded bytes of a request. The body is never left open. Throws RequestUnreadable, the signal's reason, and the error of the body.
 */
export async function readRequest({ body, headers }: ports.ModelCall, signal: AbortSignal): Promise<Uint8Array> {
  const stream = body instanceof Readable ? body : undefined;
  const onAbort = () => stream?.destroy(abortError(signal));
  if (signal.aborted) {
    stream?.destroy();
    throw abortError(signal);
  }
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const decoder = decoderOf(headers["content-encoding"]);
    if (!decoder && !stream) return body as Uint8Array;
    const source = stream ?? Readable.from([body], { objectMode: false });
    return await gather(decoder ? passStream(source, decoder) : source);
  } catch (error) {
    if (signal.aborted) throw abortError(signal);
    throw isOfDecoder(error) ? new RequestUnreadable("The body cannot be decoded") : error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    stream?.destroy();
  }
}

async function gather(source: Readable): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of source as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > REQUEST_BYTES) throw new RequestUnreadable("The body is larger than 256 MiB", true);
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

function decoderOf(encoding: string | undefined): ReturnType<typeof createDecoder> {
  try {
    return createDecoder(encoding);
  } catch {
    throw new RequestUnreadable("The encoding of the body is not supported");
  }
}

function isOfDecoder(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === "string" && /^(?:Z_|ERR_BROTLI|ERR_ZSTD|ERR__ERROR|ZSTD_|BROTLI_)/.test(code);
}
