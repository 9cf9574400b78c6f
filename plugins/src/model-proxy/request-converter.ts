import type { ports } from "@portico/core";
import { JobThread } from "@portico/core/kit";
import { ConversionRefused, convertRequest, handedOver, type JsonObject, type RequestBytes } from "@portico/core/model-protocols";
import { proxyErrors } from "./errors.ts";
import { CONVERTED_HERE_BYTES } from "./limits.ts";
import type { Protocol } from "./protocol.ts";

/** A worker that is idle for this long is stopped, to free the memory of large bodies. */
const IDLE_MS = 10_000;

export interface ConversionJob {
  readonly from: Protocol;
  readonly bytes: Uint8Array;
  readonly dialect: ports.ChatDialect;
}

export type ConversionResult = { readonly request: RequestBytes } | { readonly refused: Refusal } | { readonly failed: string };

/** A ConversionRefused as a message from the worker. */
interface Refusal {
  readonly field: string;
  readonly message: string;
  readonly details: JsonObject | undefined;
}

export interface RequestConverter {
  /**
   * Throws invalid_field if the request cannot be expressed in the other protocol. `dialect` is the provider's. The bytes may be moved to
   * the worker: callers must not use them afterwards.
   */
  convert(from: Protocol, bytes: Buffer, dialect: ports.ChatDialect): RequestBytes | Promise<RequestBytes>;
  close(): Promise<void>;
}

/** Converts small requests on the event loop. A worker thread converts large requests, one after another, so that they do not block the event loop. */
export function createRequestConverter(clock: ports.Clock): RequestConverter {
  const module = () => new URL(import.meta.resolve("#conversion-worker"));
  const thread = new JobThread<ConversionJob, ConversionResult>({ name: "conversion", module, idleMs: IDLE_MS }, clock);
  return {
    convert(from, bytes, dialect) {
      if (bytes.length <= CONVERTED_HERE_BYTES) return convertHere(from, bytes, dialect);
      return convertBeside(thread, { from, bytes, dialect });
    },
    close: () => thread.close(),
  };
}

async function convertBeside(thread: JobThread<ConversionJob, ConversionResult>, job: ConversionJob): Promise<RequestBytes> {
  const result = await thread.run(job, { transfer: handedOver(job.bytes) });
  if ("request" in result) return result.request;
  throw "refused" in result ? refusal(result.refused) : new Error(`Converting a request failed: ${result.failed}`);
}

function convertHere(from: Protocol, bytes: Buffer, dialect: ports.ChatDialect): RequestBytes {
  try {
    return convertRequest(from, bytes, dialect);
  } catch (error) {
    throw error instanceof ConversionRefused ? refusal(error) : error;
  }
}

function refusal({ field, message, details }: Refusal): Error {
  return proxyErrors.invalid_field(message, { field, ...(details && { details }) });
}
