import type { Readable } from "node:stream";
import type { Clock } from "../ports/clock.ts";
import type { RouteContract } from "../route.ts";
import { readBody } from "./body.ts";
import { hasMediaType } from "./media-type.ts";
import { parseJsonBody } from "./parse-json-body.ts";
import { accepted, bodyError, bodyLimit, fault, parse } from "./pipeline.ts";

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
  const text = await readText(contract, arriving, clock);
  // Only now is it known whether a body came: fetch hosts declare neither a length nor an encoding.
  if (text !== "" && !hasMediaType(arriving.contentType, accepted(contract))) throw fault(faults, "unsupported_media_type");
  if (contract.bodyAs === "text") return text;
  return text === "" ? parse(body, undefined, faults) : parseJsonBody({ body, faults }, text);
}

async function readText(contract: RouteContract, { body, declared }: ArrivingBody, clock: Clock): Promise<string> {
  if (!body) return "";
  let bytes: Buffer;
  try {
    bytes = await readBody(body, { limit: bodyLimit(contract), declared, clock });
  } catch (error) {
    throw bodyError(error, contract.faults);
  }
  try {
    return utf8.decode(bytes);
  } catch {
    throw fault(contract.faults, "invalid_json");
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
