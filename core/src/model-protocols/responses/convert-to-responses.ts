import type { ModelFacts } from "../../ports/models.ts";
import { isJsonObject, type JsonObject } from "../json.ts";
import { parseLongData, writeLongData } from "../long-data.ts";
import type { ModelError } from "../model-events.ts";
import { withoutRefusedPart } from "../refused-part.ts";
import { ConversionRefused } from "../request/fields.ts";
import { withParameters } from "../write-request.ts";
import { type RefusedPart, type ResponsesRequest, requestToResponses, withoutRefused } from "./request-to-responses.ts";

/** A Responses request that is ready to be sent, with the facts that the reader of its answer needs. */
export interface ResponsesRequestBytes {
  readonly body: Uint8Array;
  /** The model's name, as the caller wrote it. */
  readonly model: string;
  readonly isStream: boolean;
  /** Fields of the Messages request that were left out. */
  readonly dropped: readonly string[];
  /** The parts that were left out. */
  readonly left: readonly RefusedPart[];
  /** Whether the part that `RefusedParts.named` names was left out. */
  readonly isLighter: boolean;
  /** The names of tools that were replaced: the name that is sent, and the caller's name. */
  readonly toolNames: ReadonlyMap<string, string>;
  /** For `stopAt`. */
  readonly stopSequences: readonly string[];
}

/** What a provider does not accept. */
export interface RefusedParts {
  readonly parts: readonly RefusedPart[];
  /** A refusal of another part, which both protocols of callers have: an image, a document. */
  readonly named?: { readonly status: number; readonly error: ModelError } | undefined;
  /** By model. */
  readonly ofModels: ReadonlyMap<string, readonly RefusedPart[]>;
}

/**
 * Converts the bytes of a Messages request to a request of OpenAI's Responses API, without the parts that the provider does not accept.
 * `owner` is a short name for the provider, in letters and digits: only reasoning that this provider gave is sent back to it. `facts` are
 * those of the model: its name and its parameters are set in the converted request. `isOwn` as for `convertRequest`. Throws ConversionRefused.
 */
export function convertToResponses(
  bytes: Uint8Array,
  owner: string,
  refused: RefusedParts = { parts: [], ofModels: new Map() },
  facts: ModelFacts = {},
  isOwn = false,
): ResponsesRequestBytes {
  const body = parse(bytes);
  if (!isJsonObject(body)) throw new ConversionRefused("(body)", "expected a JSON object");
  if (typeof body.model !== "string" || body.model === "") throw new ConversionRefused("model", "must be a string");
  const { named } = refused;
  const lighter = named && withoutRefusedPart("messages", body, named.status, named.error);
  const converted = requestToResponses((lighter?.body ?? body) as JsonObject, owner, facts.images !== false);
  let request: ResponsesRequest = { ...converted, body: withParameters(converted.body, facts) as JsonObject };
  const without = new Set([...(refused.ofModels.get(body.model) ?? []), ...refused.parts]);
  const left = [...without].filter((part) => {
    const rest = withoutRefused(request, part);
    request = rest ?? request;
    return rest !== undefined;
  });
  return {
    body: write(request.body, bytes, isOwn),
    model: body.model,
    isStream: request.isStream,
    dropped: [...new Set([...(lighter?.dropped ?? []), ...request.dropped])],
    left,
    isLighter: lighter !== undefined,
    toolNames: request.toolNames,
    stopSequences: request.stopSequences,
  };
}

function parse(bytes: Uint8Array): unknown {
  try {
    return parseLongData(bytes);
  } catch {
    return undefined;
  }
}

function write(body: object, source: Uint8Array, isOwn: boolean): Uint8Array {
  try {
    return writeLongData(body, source, isOwn);
  } catch (cause) {
    // JSON.parse accepts any depth, but JSON.stringify does not.
    if (cause instanceof RangeError) throw new ConversionRefused("(body)", "is nested too deeply");
    throw cause;
  }
}
