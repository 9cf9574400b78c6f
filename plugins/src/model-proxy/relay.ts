import type { Readable, Writable } from "node:stream";
import { type Exchange, ports, type RequestHead } from "@portico/core";
import { streamErrorEvent } from "./convert/errors.ts";
import type { ModelError } from "./convert/model-events.ts";
import { answerHeaders, requestHeaders, requestQuery } from "./header-filter.ts";
import type { Protocol } from "./protocol.ts";
import type { Upload } from "./upload.ts";
import { callFailure, relayError } from "./upstream-error.ts";

export interface RelayCall {
  readonly protocol: Protocol;
  readonly provider: ports.ModelProvider;
  readonly exchange: Exchange;
  readonly head: RequestHead;
  readonly upload: Upload;
  readonly signal: AbortSignal;
  /** Told when the upstream begins to answer. */
  readonly answering: (streamed: boolean) => void;
}

/** The same protocol on both sides: the bytes pass, in both directions, and nothing is held back (open points 2). */
export async function relay({ protocol, provider, exchange, head, upload, signal, answering }: RelayCall): Promise<void> {
  const answer = await send(provider, exchange, head, upload, signal);
  answering(upload.facts.stream === true);
  if (answer.status < 200 || answer.status > 299) return relayError({ protocol, provider, exchange, answer });
  const headers = answerHeaders(answer.headers, provider);
  const out = exchange.respond(answer.status, headers);
  // Already read to its end: no error that comes later is of any concern.
  if (hasArrived(answer)) return void out.end(answer.body.on("error", () => {}).read());
  await pass(answer.body, out, (error) =>
    isPlainEventStream(headers) ? streamErrorEvent(protocol, brokenStream(error, provider)) : undefined,
  );
}

/** How a stream that broke is told to its caller: nothing of the upstream but its provider's name. */
export function brokenStream(error: Error, provider: ports.ModelProvider): ModelError {
  const kind = error.name === ports.ModelTimeout.name ? "timeout" : "upstream";
  const message =
    error instanceof ports.ModelTimeout || error instanceof ports.ModelUnreachable
      ? error.message
      : `Provider "${provider.id}" broke its answer off`;
  return { kind, message: provider.redact(message) };
}

async function send(
  provider: ports.ModelProvider,
  exchange: Exchange,
  head: RequestHead,
  upload: Upload,
  signal: AbortSignal,
): Promise<ports.ModelAnswer> {
  const call: ports.ModelCall = {
    headers: requestHeaders(exchange.headers),
    query: requestQuery(head.search),
    body: upload.body,
    ...(upload.length !== undefined && { length: upload.length }),
  };
  if (!upload.rest) return provider.send(call, signal).catch(callFailure);
  // The rest of the body may still prove bad: then the call is cut, and what was wrong with the body is the answer.
  const cut = new AbortController();
  const either = AbortSignal.any([signal, cut.signal]);
  upload.rest.catch((error: unknown) => cut.abort(error));
  return provider.send(call, either).catch(callFailure);
}

/**
 * Pass a body on as fast as the reader takes it. Resolves when it is out or the reader left. If it breaks, what `ending` says is the last
 * thing that is written, after a line end that closes a broken event; where it says nothing the connection is cut.
 */
function pass(body: Readable, out: Writable, ending: (error: Error) => string | undefined): Promise<void> {
  return new Promise((resolve) => {
    let last: Buffer | undefined;
    const onDrain = () => void body.resume();
    body.on("data", (chunk: Buffer) => {
      last = chunk;
      if (!out.write(chunk)) body.pause();
    });
    body.on("end", () => {
      out.end();
      resolve();
    });
    body.on("error", (error: Error) => {
      const text = out.destroyed ? undefined : ending(error);
      if (text === undefined) out.destroy();
      else out.end(endsEvent(last) ? text : `\n\n${text}`);
      resolve();
    });
    out.on("drain", onDrain);
    out.on("close", () => {
      body.destroy();
      resolve();
    });
  });
}

/** Most whole answers come together with their head: there are no pieces to wait for. */
function hasArrived({ headers, body }: ports.ModelAnswer): boolean {
  return body.readableLength > 0 && headers["content-length"] === String(body.readableLength);
}

function isPlainEventStream(headers: Readonly<Record<string, string | readonly string[]>>): boolean {
  const type = headers["content-type"];
  const encoding = headers["content-encoding"];
  return (
    typeof type === "string" &&
    type.startsWith("text/event-stream") &&
    (encoding === undefined || encoding === "identity") &&
    headers["content-length"] === undefined
  );
}

function endsEvent(last: Buffer | undefined): boolean {
  if (!last) return true;
  const tail = last.subarray(-4).toString("latin1");
  return tail.endsWith("\n\n") || tail.endsWith("\r\n\r\n") || tail.endsWith("\r\r");
}
