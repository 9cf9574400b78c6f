import type { ports } from "@portico/core";
import { JobThread } from "@portico/core/kit";
import { handedOver, type ModelError, type RequestBytes } from "@portico/core/model-protocols";
import { type ConversionJob, type ConversionResult, runConversion } from "./conversion-job.ts";
import { proxyErrors } from "./errors.ts";
import { CONVERTED_HERE_BYTES } from "./limits.ts";
import type { Protocol } from "./protocol.ts";

/** A worker that is idle for this long is stopped, to free the memory of large bodies. */
const IDLE_MS = 10_000;

/** Changes the bytes of requests. The bytes may be moved to the worker: callers must not use them afterwards. */
export interface RequestConverter {
  /** Throws invalid_field if the request cannot be expressed in the other protocol. `facts` are those of its model. */
  convert(from: Protocol, bytes: Buffer, facts: ports.ModelFacts): RequestBytes | Promise<RequestBytes>;
  /** The request with the name and the parameters that are set for its model. */
  setParameters(bytes: Buffer, facts: ports.ModelFacts): Promise<Uint8Array>;
  /** The request without the part that its refusal names. Undefined if the refusal names no part of it. */
  lighten(
    protocol: Protocol,
    request: RequestBytes,
    refusal: { readonly status: number; readonly error: ModelError },
  ): Promise<RequestBytes | undefined>;
  close(): Promise<void>;
}

/** Changes small requests on the event loop. A worker thread changes large requests, one after another, so that they do not block the event loop. */
export function createRequestConverter(clock: ports.Clock): RequestConverter {
  const module = () => new URL(import.meta.resolve("#conversion-worker"));
  const thread = new JobThread<ConversionJob, ConversionResult>({ name: "conversion", module, idleMs: IDLE_MS }, clock);
  const run = (job: ConversionJob) =>
    job.bytes.length <= CONVERTED_HERE_BYTES ? runConversion(job) : thread.run(job, { transfer: handedOver(job.bytes) });
  return {
    convert(from, bytes, facts) {
      const result = run({ kind: "convert", from, bytes, facts });
      return result instanceof Promise ? result.then(converted) : converted(result);
    },
    async setParameters(bytes, facts) {
      return changed(await run({ kind: "parameters", bytes, facts }))!.changed;
    },
    async lighten(protocol, request, { status, error }) {
      const result = changed(await run({ kind: "lighten", protocol, bytes: request.body, status, error }));
      if (!result) return undefined;
      const { changed: body, dropped, stopSequences = request.stopSequences } = result;
      return { ...request, body, stopSequences, dropped: [...new Set([...request.dropped, ...dropped])] };
    },
    close: () => thread.close(),
  };
}

function converted(result: ConversionResult): RequestBytes {
  if ("request" in result) return result.request;
  throw failure(result);
}

function changed(result: ConversionResult): Extract<ConversionResult, { changed: unknown }> | undefined {
  if ("changed" in result) return result;
  if ("unchanged" in result) return undefined;
  throw failure(result);
}

function failure(result: ConversionResult): Error {
  if (!("refused" in result)) return new Error(`Converting a request failed: ${"failed" in result ? result.failed : "unknown"}`);
  const { field, message, details } = result.refused;
  return proxyErrors.invalid_field(message, { field, ...(details && { details }) });
}
