import { Readable } from "node:stream";
import type { InferOutput } from "valibot";
import type { Clock } from "../ports/clock.ts";
import type { RouteContract, Schema } from "../grammar/contract.ts";
import { readBody } from "./body.ts";
import { accepted, bodyError, bodyLimit, fault, hasMediaType, parse } from "./pipeline.ts";
import { limitBody, type StreamedBody } from "./streamed-body.ts";
import type { Faults } from "../grammar/error.ts";
import { hasMoreLevels, parseJson } from "../kit/parse-json.ts";

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

/** Maximum nesting of lists and objects in a body. Later code may recurse, and may add levels of its own. */
const BODY_LEVELS = 512;

/**
 * Parses the text of a body with the contract's `body` schema, as is done with every body. For handlers that take their body as
 * text first. Throws the contract's own `invalid_json` for invalid JSON, such as `""` and undefined. Throws its `invalid_request`
 * for a value that does not fit, or nests deeper than 512 levels. Large whole numbers become texts, as `parseJson` says.
 */
export function parseJsonBody<S extends Schema>(
  contract: { readonly body: S; readonly faults?: Faults | undefined },
  text: string | undefined,
): InferOutput<S> {
  const value = parseText(text, contract.faults);
  // Each level needs at least two characters: most bodies are too short to be too deep.
  if (text!.length > 2 * BODY_LEVELS && hasMoreLevels(value, BODY_LEVELS)) {
    const issues = [`body: expected at most ${BODY_LEVELS} levels of lists and objects`];
    throw fault(contract.faults, "invalid_request", { details: { issues } });
  }
  return parse(contract.body, value, contract.faults) as InferOutput<S>;
}

function parseText(text: string | undefined, own: Faults | undefined): unknown {
  if (text === undefined) throw fault(own, "invalid_json");
  try {
    return parseJson(text);
  } catch {
    // The parser's message quotes the text, which may hold secrets. It is neither shown nor kept as the cause.
    throw fault(own, "invalid_json");
  }
}
