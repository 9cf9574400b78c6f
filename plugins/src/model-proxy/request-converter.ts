import { Worker } from "node:worker_threads";
import type { ports } from "@portico/core";
import { ConversionRefused } from "./convert/conversion-refused.ts";
import { convertRequest, type RequestBytes } from "./convert/convert-request.ts";
import type { JsonObject } from "./convert/json.ts";
import { proxyErrors } from "./errors.ts";
import { handedOver } from "./handed-over.ts";
import { CONVERTED_HERE_BYTES } from "./limits.ts";
import type { Protocol } from "./protocol.ts";

/** A worker that is idle for this long is stopped, to free the memory of large bodies. */
const IDLE_MS = 10_000;

export interface ConversionJob {
  readonly id: number;
  readonly from: Protocol;
  readonly bytes: Uint8Array;
  readonly dialect: ports.ChatDialect;
}

export type ConversionResult =
  | { readonly id: number; readonly request: RequestBytes }
  | { readonly id: number; readonly refused: Refusal }
  | { readonly id: number; readonly failed: string };

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
  const waiting = new Map<number, { resolve: (request: RequestBytes) => void; reject: (error: unknown) => void }>();
  let worker: Worker | undefined;
  let idle: ports.Timer | undefined;
  let lastId = 0;

  const stop = async () => {
    idle?.cancel();
    const stopping = worker;
    worker = undefined;
    await stopping?.terminate();
  };
  const fail = (cause: unknown) => {
    worker = undefined;
    for (const { reject } of waiting.values()) reject(cause);
    waiting.clear();
  };
  const start = (): Worker => {
    const started = new Worker(new URL(import.meta.resolve("#conversion-worker")));
    started.unref();
    started.on("message", (result: ConversionResult) => {
      const job = waiting.get(result.id);
      waiting.delete(result.id);
      if ("request" in result) job?.resolve(result.request);
      else if ("refused" in result) job?.reject(refusal(result.refused));
      else job?.reject(new Error(`Converting a request failed: ${result.failed}`));
      idle?.cancel();
      if (waiting.size === 0) idle = clock.after(IDLE_MS, () => void stop());
    });
    started.on("error", fail);
    return started;
  };

  return {
    convert(from, bytes, dialect) {
      if (bytes.length <= CONVERTED_HERE_BYTES) return convertHere(from, bytes, dialect);
      idle?.cancel();
      worker ??= start();
      const id = ++lastId;
      const job: ConversionJob = { id, from, bytes, dialect };
      worker.postMessage(job, handedOver(bytes));
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    },
    async close() {
      await stop();
      fail(new Error("The converter is closed"));
    },
  };
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
