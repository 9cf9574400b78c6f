import type { Readable } from "node:stream";
import type { ports } from "@portico/core";
import { errorStatus, type ModelError, refusal } from "@portico/core/model-protocols";

/** Bytes of a vendor's error that are read. */
const ERROR_BYTES = 1024 * 1024;

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

/** The text of an error, up to 1 MiB. A body that breaks counts as empty. */
export async function errorText({ body, whole }: ports.ModelAnswer): Promise<string> {
  if (whole) return whole.subarray(0, ERROR_BYTES).toString("utf8");
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= ERROR_BYTES) break;
    }
  } catch {
    return "";
  } finally {
    (body as Readable).destroy();
  }
  return Buffer.concat(chunks).subarray(0, ERROR_BYTES).toString("utf8");
}
