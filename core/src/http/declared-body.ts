import { Readable } from "node:stream";
import type { Clock } from "../ports/clock.ts";
import type { RouteContract } from "../route.ts";
import { readBody } from "./body.ts";
import { hasMediaType } from "./media-type.ts";
import { parseJsonBody } from "./parse-json-body.ts";
import { accepted, bodyError, bodyLimit, fault, parse } from "./pipeline.ts";
import { limitBody, type StreamedBody } from "./streamed-body.ts";

/** A body as it arrives, on any host. */
export interface ArrivingBody {
  /** Undefined where there is none. */
  readonly body: Readable | undefined;
  readonly contentType: string | undefined;
  /** Bytes that the head declares. */
  readonly declared?: number | undefined;
}

/**
 * Reads the body that a route declares, as its handler wants it: parsed, or as text. Throws the area's own faults, and what the stream
 * fails with.
 */
export async function readDeclaredBody(contract: RouteContract, arriving: ArrivingBody, clock: Clock): Promise<unknown> {
  const { body, faults } = contract;
  if (!body) return undefined;
  const text = toText(await readBytes(contract, arriving, clock));
  // Only now is it known whether a body came: fetch hosts declare neither a length nor an encoding.
  if (text !== "" && !hasMediaType(arriving.contentType, accepted(contract))) throw fault(faults, "unsupported_media_type");
  if (contract.bodyAs === "text") return text;
  return text === "" ? parse(body, undefined, faults) : parseJsonBody({ body, faults }, text);
}

/**
 * Lends the body of a route with `bodyAs: "stream"` to its handler. It breaks when the handler is done, which leaves a Node request
 * readable: whoever answers sees to the rest of it. Rejects with what the handler throws; errors of the body in the area's words.
 */
export async function lendBody(
  contract: RouteContract,
  { body = Readable.from([]), contentType = "" }: ArrivingBody,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
  handle: (body: StreamedBody) => unknown,
): Promise<unknown> {
  const stream = limitBody(body, { limit: bodyLimit(contract), clock, signal });
  try {
    return await handle({ headers: { contentType }, stream });
  } catch (error) {
    throw bodyError(error, contract.faults);
  } finally {
    stream.destroy();
  }
}

async function readBytes(contract: RouteContract, { body, declared }: ArrivingBody, clock: Clock): Promise<Buffer | undefined> {
  try {
    return body && (await readBody(body, { limit: bodyLimit(contract), declared, clock }));
  } catch (error) {
    throw bodyError(error, contract.faults);
  }
}

/** Undefined for what is no UTF-8. */
function toText(bytes: Buffer | undefined): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
