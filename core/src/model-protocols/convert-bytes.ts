import type { ModelFacts, ModelProtocol } from "../ports/models.ts";
import { isJsonObject, type JsonObject, writeExactly } from "./json.ts";
import { ADDED_ROOM, parseLongData, writeLongData } from "./long-data.ts";
import { ConversionRefused } from "./request/fields.ts";
import { wellFormedJson } from "./well-formed-json.ts";
import type { JsonRecord } from "./fit/fitted-request.ts";
import { withParameters, writeRequest } from "./write-request.ts";

/** A converted request that is ready to be sent, with the facts that the answer's writer needs. */
export interface RequestBytes {
  /** Bytes instead of text, because bytes can be moved between threads without a copy. */
  readonly body: Uint8Array;
  readonly dropped: readonly string[];
  readonly isStream: boolean;
  /** Whether a Chat Completions caller asked for usage in its stream. */
  readonly includeUsage: boolean;
  /** The names of tools that were replaced: the name that is sent, and the caller's name, which the answer must have. */
  readonly toolNames: ReadonlyMap<string, string>;
  /** Stop sequences that the provider does not take. The reader of the answer ends it there. */
  readonly stopSequences: readonly string[];
  /** Whether a Chat Completions caller declared `functions` and no `tools`. Its answer then uses `function_call`. */
  readonly isLegacy: boolean;
}

/**
 * Converts the bytes of a request, which must be valid JSON, to the other protocol, for a model with these facts. With `isOwn`, the result may
 * take the place of `bytes` in their buffer, which nothing else may use then. Throws ConversionRefused.
 */
export function convertRequest(from: ModelProtocol, bytes: Uint8Array, facts: ModelFacts, isOwn = false): RequestBytes {
  const body = parseLongData(bytes);
  if (!isJsonObject(body)) throw new ConversionRefused("(body)", "expected an object");
  const written = writeRequest(from, body, from === "messages" ? "chat-completions" : "messages", facts);
  return {
    body: writeLongData(written.body, bytes, isOwn),
    toolNames: written.toolNames,
    dropped: written.dropped,
    stopSequences: written.stopSequences,
    isStream: body["stream"] === true,
    includeUsage: asksForUsage(body),
    isLegacy: Array.isArray(body["functions"]) && !Array.isArray(body["tools"]),
  };
}

function asksForUsage(body: JsonObject): boolean {
  const options = body["stream_options"];
  return isJsonObject(options) && options["include_usage"] === true;
}

/**
 * The bytes of a request, which must be valid JSON, with the name and the parameters that are set for its model. Everything else stays as its
 * caller wrote it. `isOwn` as for `convertRequest`.
 */
export function setParameters(bytes: Uint8Array, facts: ModelFacts, isOwn = false): Uint8Array {
  const body = parseLongData(bytes);
  return isJsonObject(body) ? writeLongData(withParameters(body, facts), bytes, isOwn) : bytes;
}

/** The bytes of a request that was written. */
export function toBytes(body: JsonRecord): Uint8Array {
  return Buffer.from(wellFormedJson(writeExactly(body)));
}

/**
 * The buffers that a message between threads moves instead of copying: those that hold these bytes alone, or with the room of a large body.
 * `isOwn`: the bytes come from a conversion in this thread, so nothing else is in the buffer of a large result.
 */
export function handedOver({ buffer, byteOffset, byteLength }: Uint8Array, isOwn = false): ArrayBuffer[] {
  const rest = buffer.byteLength - byteLength;
  const isAlone = byteOffset === 0 && (rest === 0 || rest === ADDED_ROOM);
  // Small results may be slices of Node's shared pool.
  return buffer instanceof ArrayBuffer && (isAlone || (isOwn && byteLength > ADDED_ROOM)) ? [buffer] : [];
}
