import { Readable } from "node:stream";
import type { ports } from "@portico/core";
import { isJsonObject, type JsonObject, parseExactly, refusal } from "@portico/core/model-protocols";
import { abortError } from "../abort-error.ts";

/** The longest body that is read whole. Vendors whose bodies are rewritten take less: 25 MB (Bedrock), 30 MB (Vertex AI). */
const WHOLE_BYTES = 32 * 1024 * 1024;

/** The body of a call, read whole. `refused` is the answer in its place, if the body cannot be read. */
export type WholeCall =
  | { readonly bytes: Uint8Array; readonly body: JsonObject; readonly model: string }
  | { readonly refused: ports.ModelAnswer };

/**
 * Reads the whole body of a call, for services that take the model from the address, or sign the body. Rejects with the signal's reason, or
 * as the body fails. A body that is too long or is not a JSON object with a model gets the answer of the Messages protocol.
 */
export async function readCall({ body: given }: Pick<ports.ModelCall, "body">, signal: AbortSignal): Promise<WholeCall> {
  const bytes = given instanceof Readable ? await gather(given, signal) : given;
  if (!bytes || bytes.length > WHOLE_BYTES)
    return {
      refused: refusal({ kind: "too-large", message: "The request has more than 32 MiB, which this provider does not take." }),
    };
  const body = parsed(bytes);
  if (!isJsonObject(body) || typeof body.model !== "string" || body.model === "")
    return { refused: refusal({ kind: "invalid-request", message: "The request is not a JSON object with a model." }) };
  return { bytes, body, model: body.model };
}

/** Undefined if the body is too long. */
async function gather(body: Readable, signal: AbortSignal): Promise<Buffer | undefined> {
  const onAbort = () => void body.destroy(abortError(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    if (signal.aborted) onAbort();
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > WHOLE_BYTES) return undefined;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } catch (error) {
    throw signal.aborted ? abortError(signal) : error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    body.destroy();
  }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return parseExactly(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  } catch {
    return undefined;
  }
}
