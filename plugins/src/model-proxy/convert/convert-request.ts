import type { ports } from "@portico/core";
import type { Protocol } from "../protocol.ts";
import { ConversionRefused } from "./conversion-refused.ts";
import { parseExactly, writeExactly } from "./exact-json.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import { requestToChat } from "./request-to-chat.ts";
import { requestToMessages } from "./request-to-messages.ts";

/** A converted request that is ready to be sent, with the facts that the answer's writer needs. */
export interface RequestBytes {
  /** Bytes instead of text, because bytes can be moved between threads without a copy. */
  readonly body: Uint8Array;
  readonly dropped: readonly string[];
  readonly isStream: boolean;
  /** Whether a Chat Completions caller asked for usage in its stream. */
  readonly includeUsage: boolean;
  /** Whether a Chat Completions caller declared `functions` and no `tools`. Its answer then uses `function_call`. */
  readonly isLegacy: boolean;
}

/**
 * Converts the bytes of a request, which must be valid JSON, to the other protocol. `dialect` describes what a provider of Chat Completions
 * supports. Throws ConversionRefused.
 */
export function convertRequest(from: Protocol, bytes: Uint8Array, dialect: ports.ChatDialect): RequestBytes {
  const body: unknown = parseExactly(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  if (!isJsonObject(body)) throw new ConversionRefused("(body)", "expected an object");
  const { body: converted, dropped } = from === "messages" ? requestToChat(body, dialect) : requestToMessages(body);
  return {
    body: Buffer.from(writeExactly(converted)),
    dropped,
    isStream: body["stream"] === true,
    includeUsage: asksForUsage(body),
    isLegacy: Array.isArray(body["functions"]) && !Array.isArray(body["tools"]),
  };
}

function asksForUsage(body: JsonObject): boolean {
  const options = body["stream_options"];
  return isJsonObject(options) && options["include_usage"] === true;
}
