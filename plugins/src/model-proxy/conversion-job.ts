import type { ports } from "@portico/core";
import {
  ConversionRefused,
  convertRequest,
  isJsonObject,
  type JsonObject,
  type ModelError,
  parseLongData,
  type RequestBytes,
  setParameters,
  withoutRefusedPart,
  writeLongData,
} from "@portico/core/model-protocols";
import type { Protocol } from "./protocol.ts";

/** Work on the bytes of one request, which must be valid JSON. A worker thread does it for large requests. */
export type ConversionJob =
  /** Converts a request to the other protocol. */
  | { readonly kind: "convert"; readonly from: Protocol; readonly bytes: Uint8Array; readonly facts: ports.ModelFacts }
  /** Sets the name and the parameters of the model. */
  | { readonly kind: "parameters"; readonly bytes: Uint8Array; readonly facts: ports.ModelFacts }
  /** Leaves out the part that a refusal names. */
  | {
      readonly kind: "lighten";
      readonly protocol: Protocol;
      readonly bytes: Uint8Array;
      readonly status: number;
      readonly error: ModelError;
    };

/** The result of a job. `unchanged`: a refusal named no part of the request. */
export type ConversionResult =
  | { readonly request: RequestBytes }
  | { readonly changed: Uint8Array; readonly dropped: readonly string[]; readonly stopSequences?: readonly string[] | undefined }
  | { readonly unchanged: true }
  | { readonly refused: Refusal }
  | { readonly failed: string };

/** A ConversionRefused as a message from the worker. */
export interface Refusal {
  readonly field: string;
  readonly message: string;
  readonly details: JsonObject | undefined;
}

/** Does one job. `isOwn`: nothing else uses the buffer of its bytes, which the result may take. Never throws. */
export function runConversion(job: ConversionJob, isOwn = false): ConversionResult {
  try {
    switch (job.kind) {
      case "convert":
        return { request: convertRequest(job.from, job.bytes, job.facts, isOwn) };
      case "parameters":
        return { changed: setParameters(job.bytes, job.facts, isOwn), dropped: [] };
      case "lighten": {
        const body = parseLongData(job.bytes);
        const lighter = isJsonObject(body) ? withoutRefusedPart(job.protocol, body, job.status, job.error) : undefined;
        if (!lighter) return { unchanged: true };
        const { dropped, stopSequences } = lighter;
        return { changed: writeLongData(lighter.body, job.bytes, isOwn), dropped, stopSequences };
      }
    }
  } catch (error) {
    if (error instanceof ConversionRefused) {
      const { field, message, details } = error;
      return { refused: { field, message, details } };
    }
    return { failed: error instanceof Error ? error.name : "unknown" };
  }
}
