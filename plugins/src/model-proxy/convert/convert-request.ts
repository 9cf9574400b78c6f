import type { ports } from "@portico/core";
import type { Protocol } from "../protocol.ts";
import { ConversionRefused } from "./conversion-refused.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import { requestToChat } from "./request-to-chat.ts";
import { requestToMessages } from "./request-to-messages.ts";

/** A converted request as it goes out, with what the answer's writer has to know of it. */
export interface RequestBytes {
  /** Bytes and not text: they pass between threads without a copy. */
  readonly body: Uint8Array;
  readonly dropped: readonly string[];
  readonly isStream: boolean;
  /** A Chat Completions caller asked for usage in its stream. */
  readonly includeUsage: boolean;
  /** A Chat Completions caller declared `functions` and no `tools`: its answer says `function_call`. */
  readonly isLegacy: boolean;
}

/**
 * From the bytes of a request to those of the same request in the other protocol. `dialect` is what a provider of Chat Completions takes.
 * Throws ConversionRefused; the bytes are valid JSON.
 */
export function convertRequest(from: Protocol, bytes: Uint8Array, dialect: ports.ChatDialect): RequestBytes {
  const body: unknown = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  if (!isJsonObject(body)) throw new ConversionRefused("(body)", "expected an object");
  const { body: converted, dropped } = from === "messages" ? requestToChat(body, dialect) : requestToMessages(body);
  return {
    body: Buffer.from(JSON.stringify(converted)),
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
