import type { ports } from "@portico/core";
import { errorStatus, type ModelError, refusal } from "@portico/core/model-protocols";

/**
 * A vendor's refusal as an error of the Messages protocol: with the status of its kind, the vendor's request id, and the time to retry.
 */
export function errorAnswer(error: ModelError, { headers }: Pick<ports.ModelAnswer, "headers">): ports.ModelAnswer {
  const kept = Object.entries(headers).filter(([name]) => name.startsWith("retry-after") || name.endsWith("request-id"));
  const id = headers["x-amzn-requestid"];
  return refusal(
    error,
    { ...Object.fromEntries(kept), ...(id !== undefined && { "request-id": id }) },
    errorStatus("messages", error.kind),
  );
}
