import type { ports } from "@portico/core";
import { JobThread } from "@portico/core/kit";
import {
  ConversionRefused,
  convertToResponses,
  type JsonObject,
  type RefusedParts,
  type ResponsesRequestBytes,
} from "@portico/core/model-protocols";

/** Maximum bytes of a request that is converted on the event loop, where it delays other callers for a few milliseconds. */
const CONVERTED_HERE_BYTES = 512 * 1024;
/** A worker that is idle for this long is stopped, to free the memory of large bodies. */
const IDLE_MS = 10_000;

export interface ConversionJob {
  readonly bytes: Uint8Array;
  readonly owner: string;
  readonly refused: RefusedParts;
  /** Of the model. */
  readonly facts: ports.ModelFacts;
}

/** A ConversionRefused as a message from the worker. */
export interface ConversionRefusal {
  readonly field: string;
  readonly message: string;
  readonly details: JsonObject | undefined;
}

export type ConversionResult =
  | { readonly request: ResponsesRequestBytes }
  | { readonly refused: ConversionRefusal }
  | { readonly failed: string };

export interface ResponsesConverter {
  /** Rejects with the signal's reason. */
  convert(job: ConversionJob, signal: AbortSignal): Promise<Exclude<ConversionResult, { readonly failed: string }>>;
  close(): Promise<void>;
}

/** Converts small requests on the event loop, and large requests in a worker thread, one after another. */
export function createResponsesConverter(clock: ports.Clock): ResponsesConverter {
  const module = () => new URL(import.meta.resolve("#responses-conversion-worker"));
  const thread = new JobThread<ConversionJob, ConversionResult>({ name: "conversion", module, idleMs: IDLE_MS }, clock);
  return {
    async convert(job, signal) {
      if (job.bytes.length <= CONVERTED_HERE_BYTES) return convertHere(job);
      const result = await thread.run(job, { signal });
      if ("failed" in result) throw new Error(`Converting a request failed: ${result.failed}`);
      return result;
    },
    close: () => thread.close(),
  };
}

function convertHere({
  bytes,
  owner,
  refused,
  facts,
}: ConversionJob): { request: ResponsesRequestBytes } | { refused: ConversionRefusal } {
  try {
    return { request: convertToResponses(bytes, owner, refused, facts) };
  } catch (error) {
    if (error instanceof ConversionRefused) return { refused: error };
    throw error;
  }
}
