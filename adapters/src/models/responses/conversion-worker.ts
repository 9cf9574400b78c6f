import { listenForJobs } from "@portico/core/kit";
import { ConversionRefused, convertToResponses, handedOver } from "@portico/core/model-protocols";
import type { ConversionJob, ConversionResult } from "./responses-converter.ts";

// Runs in a worker thread, for large bodies: parsing them on the event loop would delay all other callers.
listenForJobs(convert, (result) => ("request" in result ? handedOver(result.request.body, true) : []));

function convert({ bytes, owner, refused, facts }: ConversionJob): ConversionResult {
  try {
    return { request: convertToResponses(bytes, owner, refused, facts, true) };
  } catch (error) {
    if (error instanceof ConversionRefused)
      return { refused: { field: error.field, message: error.message, details: error.details } };
    return { failed: error instanceof Error ? error.name : "unknown" };
  }
}
