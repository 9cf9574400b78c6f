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
  /** Undefined without a body. */
  readonly body: Readable | undefined;
  readonly contentType: string | undefined;
  /** Bytes that the head declares. */
  readonly declared?: number | undefined;
}

/**
 * Reads the body that a route declares in the form that its handler wants: parsed, or as text. Throws the area's own faults, and
 * the errors of the stream.
 */
export async function readDeclaredBody(contract: RouteContract, arriving: ArrivingBody, clock: Clock): Promise<unknown> {
  const { body, faults } = contract;
  if (!body) return undefined;
  const text = toText(await readBytes(contract, arriving, clock));
  // Only now is it known whether there is a body: fetch hosts declare neither a length nor an encoding.
  if (text !== "" && !hasMediaType(arriving.contentType, accepted(contract))) throw fault(faults, "unsupported_media_type");
  if (contract.bodyAs === "text") return text;
  return text === "" ? parse(body, undefined, faults) : parseJsonBody({ body, faults }, text);
}

/**
 * Lends the body of a route with `bodyAs: "stream"` to its handler. The stream breaks when the handler is done. A Node request
 * stays readable after that: the caller of this function handles the rest. Rejects with the errors of the handler; errors of the
 * body have the area's texts.
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

/** Undefined for invalid UTF-8. */
function toText(bytes: Buffer | undefined): string | undefined {
  try {
    return utf8.decode(bytes);
  } catch {
    return undefined;
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
