import type { Transform } from "node:stream";
import type { ports } from "@portico/core";
import { createDecoder } from "../content-encoding.ts";
import { ANSWER_BYTES, WATCHED_AHEAD_BYTES } from "../limits.ts";
import type { Protocol } from "../protocol.ts";
import { AnswerEdges } from "./answer-edges.ts";
import { type AnswerEnding, readStreamEnding, readWholeEnding } from "./read-ending.ts";

/** Reads the usage and the end of an answer that is forwarded unchanged. It never delays or breaks the answer. */
export interface AnswerWatch {
  readonly isStream: boolean;
  /** Whether it reads a decompressed copy, which takes longer than the answer itself. */
  readonly isBehind: boolean;
  push(chunk: Buffer): void;
  /** Call it after the last chunk. Resolves when everything has been read; undefined if that is already the case. */
  settled(): Promise<void> | undefined;
  /** The state of the answer so far; undefined if it could not be read. */
  ending(): AnswerEnding | undefined;
  /** Releases its resources. Safe to call more than once. */
  close(): void;
}

/** Undefined for answers that cannot be read: unknown media types and encodings. */
export function watchAnswer(protocol: Protocol, headers: ports.ModelAnswer["headers"]): AnswerWatch | undefined {
  const type = headers["content-type"];
  const name = typeof type === "string" ? type.trim().toLowerCase() : "";
  const isStream = name.startsWith("text/event-stream");
  if (!isStream && !name.startsWith("application/json")) return undefined;
  const edges = new AnswerEdges();
  const ending = () => (isStream ? readStreamEnding : readWholeEnding)(protocol, edges.read());
  const decoder = decoderFor(headers);
  if (decoder === "unknown") return undefined;
  if (decoder) return { isStream, isBehind: true, ...watchDecoded(decoder, edges, ending) };
  return { isStream, isBehind: false, push: (chunk) => edges.push(chunk), settled: () => undefined, ending, close() {} };
}

/** A compressed answer is forwarded unchanged. A copy is decompressed outside the main thread. */
function watchDecoded(
  decoder: Transform,
  edges: AnswerEdges,
  ending: () => AnswerEnding,
): Omit<AnswerWatch, "isStream" | "isBehind"> {
  let size = 0;
  let isReadable = true;
  const giveUp = () => {
    isReadable = false;
    decoder.destroy();
  };
  decoder.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > ANSWER_BYTES) giveUp();
    else edges.push(chunk);
  });
  decoder.on("error", giveUp);
  return {
    push(chunk) {
      if (!isReadable) return;
      // The reader of the answer does not wait for this copy.
      if (decoder.writableLength > WATCHED_AHEAD_BYTES) giveUp();
      else decoder.write(chunk);
    },
    settled() {
      if (!isReadable) return undefined;
      return new Promise((resolve) => {
        decoder.once("end", resolve).once("close", resolve);
        decoder.end();
      });
    },
    ending: () => (isReadable ? ending() : undefined),
    close: () => void decoder.destroy(),
  };
}

function decoderFor(headers: ports.ModelAnswer["headers"]): Transform | "unknown" | undefined {
  try {
    return createDecoder(headers["content-encoding"]);
  } catch {
    return "unknown";
  }
}
