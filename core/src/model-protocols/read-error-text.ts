import { passStream } from "../http/streams.ts";
import type { ModelAnswer } from "../ports/models.ts";
import { createDecoder } from "./content-encoding.ts";

/** Bytes of an upstream's error that are read. The rest is ignored. */
export const ERROR_BYTES = 1024 * 1024;

/** The text of an error answer, decoded and up to a limit. A body that cannot be read counts as empty. The body is never left open. */
export async function readErrorText({ body, headers }: ModelAnswer): Promise<string> {
  try {
    const decoder = createDecoder(headers["content-encoding"]);
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of (decoder ? passStream(body, decoder) : body) as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, ERROR_BYTES - size));
      size += chunk.length;
      if (size >= ERROR_BYTES) break;
    }
    return Buffer.concat(chunks).toString("utf8");
  } catch {
    return "";
  } finally {
    body.destroy();
  }
}
