import { Buffer } from "node:buffer";
import type { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { hasMoreLevels, ports } from "@portico/core";
import { tooDeep, tooLarge } from "./http-failure.ts";

export interface HttpAnswer {
  readonly status: number;
  /** By lowercase name. `set-cookie` is a list, any other header one text. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** JSON if the answer declares it; otherwise a text, or bytes in base64; null without a body. */
  readonly body: unknown;
  /** Set if `body` is bytes in base64. */
  readonly encoding?: "base64";
}

/** For servers that compress although the request did not allow it. */
const DECODERS = { gzip: createGunzip, "x-gzip": createGunzip, deflate: createInflate, br: createBrotliDecompress };

/** Read an answer to its end. Throws NodeFailed if it is larger, decompressed, or nests deeper than a node's output may. */
export async function readAnswer(
  answer: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string | string[] | undefined>>;
    readonly body: Readable;
  },
  origin: string,
  hasBody: boolean,
): Promise<HttpAnswer> {
  const headers = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, toText(name, value)]));
  if (hasBody && Number(headers["content-length"]) > ports.NODE_OUTPUT_BYTES) {
    answer.body.on("error", () => undefined).destroy();
    throw tooLarge(origin);
  }
  const decoder = hasBody ? decoderOf(headers["content-encoding"]) : undefined;
  const bytes = await collect(answer.body, decoder, () => tooLarge(origin));
  if (decoder) {
    // They describe the compressed bytes.
    delete headers["content-encoding"];
    delete headers["content-length"];
  }
  const read: HttpAnswer = { status: answer.status, headers, ...readBody(bytes, String(headers["content-type"] ?? "")) };
  // The output itself adds one level.
  if (hasMoreLevels(read.body, ports.NODE_OUTPUT_LEVELS - 1)) throw tooDeep(origin);
  // Escapes, base64 and headers also count.
  if (Buffer.byteLength(JSON.stringify(read)) > ports.NODE_OUTPUT_BYTES) throw tooLarge(origin);
  return read;
}

const FAILED_BODY_MS = 5000;

/**
 * The body of an answer with an unexpected status: JSON or a text. Undefined for an answer without a body, for bytes, and for a body that is too long or late, or breaks off:
 * the failure counts, and not its body. Throws the signal's reason.
 */
export async function readFailedBody(
  { headers, body }: { readonly headers: Readonly<Record<string, string | string[] | undefined>>; readonly body: Readable },
  signal: AbortSignal,
): Promise<unknown> {
  const late = AbortSignal.any([signal, AbortSignal.timeout(FAILED_BODY_MS)]);
  const stop = () => body.destroy();
  late.addEventListener("abort", stop, { once: true });
  try {
    const tooLong = () => new RangeError("The body is too long to be kept");
    const bytes = await collect(body, decoderOf(headers["content-encoding"]), tooLong, ports.FAILED_BODY_BYTES);
    const read = readBody(bytes, String(headers["content-type"] ?? ""));
    return read.encoding || read.body === null ? undefined : read.body;
  } catch {
    signal.throwIfAborted();
    return undefined;
  } finally {
    late.removeEventListener("abort", stop);
  }
}

function decoderOf(encoding: unknown): (() => Transform) | undefined {
  const isKnown = typeof encoding === "string" && Object.hasOwn(DECODERS, encoding);
  return isKnown ? DECODERS[encoding as keyof typeof DECODERS] : undefined;
}

async function collect(
  body: Readable,
  decode: (() => Transform) | undefined,
  tooLong: () => Error,
  mostBytes: number = ports.NODE_OUTPUT_BYTES,
): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  const take = async (source: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of source) {
      size += chunk.length;
      if (size > mostBytes) throw tooLong();
      chunks.push(chunk);
    }
  };
  if (decode) await pipeline(body, decode(), take);
  else await pipeline(body, take);
  return Buffer.concat(chunks);
}

function readBody(bytes: Buffer, contentType: string): Pick<HttpAnswer, "body" | "encoding"> {
  if (bytes.length === 0) return { body: null };
  const [type = ""] = contentType.toLowerCase().split(";", 1);
  const text = decodeText(bytes, type.trim(), contentType);
  if (text === undefined) return { body: bytes.toString("base64"), encoding: "base64" };
  if (!/^application\/json$|\+json$/.test(type.trim())) return { body: text };
  try {
    return { body: JSON.parse(text) as unknown };
  } catch {
    return { body: text };
  }
}

const TEXT_TYPE =
  /^text\/|^application\/(?:json|xml|javascript|x-www-form-urlencoded|x-ndjson|graphql|yaml|x-yaml)$|\+(?:json|xml|yaml)$/;

/** Undefined for a body that is not text: invalid bytes for its encoding, and types without an encoding. */
function decodeText(bytes: Buffer, type: string, contentType: string): string | undefined {
  if (type !== "" && !TEXT_TYPE.test(type)) return undefined;
  const charset = /charset="?([\w.:-]+)/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function toText(name: string, value: string | string[] | undefined): string | readonly string[] {
  if (name === "set-cookie") return [value ?? []].flat();
  return Array.isArray(value) ? value.join(", ") : (value ?? "");
}
