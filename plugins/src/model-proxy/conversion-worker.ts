import { parentPort } from "node:worker_threads";
import { ConversionRefused } from "./convert/conversion-refused.ts";
import { convertRequest } from "./convert/convert-request.ts";
import { handedOver } from "./handed-over.ts";
import type { ConversionJob, ConversionResult } from "./request-converter.ts";

// Runs in a worker thread, for large bodies: parsing them on the event loop would delay all other callers.
parentPort?.on("message", ({ id, from, bytes, dialect }: ConversionJob) => {
  const result = convert(id, from, bytes, dialect);
  parentPort?.postMessage(result, "request" in result ? handedOver(result.request.body) : []);
});

function convert(
  id: number,
  from: ConversionJob["from"],
  bytes: Uint8Array,
  dialect: ConversionJob["dialect"],
): ConversionResult {
  try {
    return { id, request: convertRequest(from, bytes, dialect) };
  } catch (error) {
    if (error instanceof ConversionRefused)
      return { id, refused: { field: error.field, message: error.message, details: error.details } };
    return { id, failed: error instanceof Error ? error.name : "unknown" };
  }
}
