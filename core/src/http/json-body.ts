import type { Readable } from "node:stream";
import type { Clock } from "../ports/clock.ts";
import type { RouteContract } from "../route.ts";
import { readBody } from "./body.ts";
import { hasMediaType } from "./media-type.ts";
import { accepted, bodyError, bodyLimit, fault, parse, parseJson } from "./pipeline.ts";

/** A JSON body as it arrives, on any host. */
export interface ArrivingBody {
  /** Undefined where there is none. */
  readonly body: Readable | undefined;
  readonly contentType: string | undefined;
  /** Bytes that the head declares. */
  readonly declared?: number | undefined;
}

/** Reads and parses the body that a route declares. Throws the area's own faults, and what the stream fails with. */
export async function readJsonBody(contract: RouteContract, arriving: ArrivingBody, clock: Clock): Promise<unknown> {
  if (!contract.body) return undefined;
  const text = await readText(contract, arriving, clock);
  // Only now is it known whether a body came: fetch hosts declare neither a length nor an encoding.
  if (text !== "" && !hasMediaType(arriving.contentType, accepted(contract))) {
    throw fault(contract.faults, "unsupported_media_type");
  }
  return parse(contract.body, text === "" ? undefined : parseJson(text, contract.faults), contract.faults);
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
