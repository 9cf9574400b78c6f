import type { JsonObject } from "./json.ts";

/** A request in the other protocol. */
export interface ConvertedRequest {
  readonly body: JsonObject;
  /** Fields of the caller's body that were left out, named as `x-portico-dropped` says them. */
  readonly dropped: readonly string[];
}
