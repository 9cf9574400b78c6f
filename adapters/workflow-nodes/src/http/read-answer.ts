import { Buffer } from "node:buffer";
import type { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { dispositionName, hasMoreLevels, isTextMediaType, parseJson, ports } from "@portico/core";
import { tooDeep, tooLarge } from "./http-failure.ts";

export interface HttpAnswer {
  readonly status: number;
  /** By lowercase name. `set-cookie` is a list, any other header one text. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** JSON if the answer declares it; otherwise a text, or bytes in base64; null without a body. */
  readonly body: unknown;
  /** Set if `body` is bytes in base64. */
  readonly encoding?: "base64";
  /** The body, if it was saved as a file of the run. `body` is null then. */
  readonly file?: ports.RunFile;
}

/** How bodies become files of the run. */
export interface Saving {
  /** Undefined if the node has no files: then a large answer is refused. */
  readonly files: ports.NodeFiles | undefined;
  /** Whether every body is saved. Otherwise those that are too large for an output are. */
  readonly isFile: boolean;
  /** The name of the file. Default: the name in the answer, or in its URL. */
  readonly name: string | undefined;
}

/** For servers that compress although the request did not allow it. */
const DECODERS = { gzip: createGunzip, "x-gzip": createGunzip, deflate: createInflate, br: createBrotliDecompress };

/**
 * Read an answer to its end. A body that is larger, decompressed, than a node's output may be becomes a file. Throws NodeFailed if it cannot
 * become one, and if it nests deeper than an output may.
 */
export async function readAnswer(
  answer: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string | string[] | undefined>>;
    readonly body: Readable;
  },
  { url, hasBody, saving }: { readonly url: URL; readonly hasBody: boolean; readonly saving: Saving },
): Promise<HttpAnswer> {
  const { files, isFile } = saving;
  const { origin } = url;
  const headers = Object.fromEntries(Object.entries(answer.headers).map(([name, value]) => [name, toText(name, value)]));
  const isLarge = Number(headers["content-length"]) > ports.NODE_OUTPUT_BYTES;
  if (hasBody && isLarge && !files) {
    answer.body.on("error", () => undefined).destroy();
    throw tooLarge(origin);
  }
  const decoder = hasBody ? decoderOf(headers["content-encoding"]) : undefined;
  if (decoder) {
    // They describe the compressed bytes.
    delete headers["content-encoding"];
    delete headers["content-length"];
  }
  const type = String(headers["content-type"] ?? "");
  const head = { status: answer.status, headers };
  const save = async (source: AsyncIterable<Uint8Array>): Promise<HttpAnswer> => {
    const name = saving.name ?? dispositionName(String(headers["content-disposition"] ?? "")) ?? nameIn(url);
    return { ...head, body: null, file: await files!.save(source, { name, mediaType: type }) };
  };
  const begun = new Beginning();
  const whole = await readThrough(answer.body, decoder, async (source) => {
    // With `response: file` every answer has a file: empty for an answer without a body, so that expressions find it.
    if (files && (isFile || (hasBody && isLarge))) return save(everythingOf(source));
    if (await begun.fill(source, ports.NODE_OUTPUT_BYTES)) return undefined;
    if (!files) throw tooLarge(origin);
    return save(begun.before(source));
  });
  if (whole) return whole;
  const bytes = begun.bytes();
  const read: HttpAnswer = { ...head, ...readBody(bytes, type) };
  // The output itself adds one level.
  if (hasMoreLevels(read.body, ports.NODE_OUTPUT_LEVELS - 1)) throw tooDeep(origin);
  // Escapes, base64 and headers also count.
  if (Buffer.byteLength(JSON.stringify(read)) <= ports.NODE_OUTPUT_BYTES) return read;
  if (!files || bytes.length === 0) throw tooLarge(origin);
  const saved = await save(begun.before());
  if (Buffer.byteLength(JSON.stringify(saved)) > ports.NODE_OUTPUT_BYTES) throw tooLarge(origin);
  return saved;
}

/** The last segment of a URL's path that is not empty. */
function nameIn({ pathname }: URL): string {
  const segment = pathname.split("/").findLast((each) => each !== "") ?? "";
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

const FAILED_BODY_MS = 5000;

/**
 * The body of an answer with an unexpected status: JSON or a text, or the beginning of a text that is too long to be kept. Without a body for an
 * answer without one, for bytes, and for a body that is late or breaks off: the failure counts, and not its body. Throws the signal's reason.
 */
export async function readFailedBody(
  { headers, body }: { readonly headers: Readonly<Record<string, string | string[] | undefined>>; readonly body: Readable },
  signal: AbortSignal,
): Promise<Pick<ports.FailedAnswer, "body" | "bodyTruncated">> {
  const late = AbortSignal.any([signal, AbortSignal.timeout(FAILED_BODY_MS)]);
  const stop = () => body.destroy();
  late.addEventListener("abort", stop, { once: true });
  try {
    const begun = new Beginning();
    const type = String(headers["content-type"] ?? "");
    let isWhole = true;
    await readThrough(body, decoderOf(headers["content-encoding"]), async (source) => {
      isWhole = await begun.fill(source, ports.FAILED_BODY_BYTES);
      if (!isWhole) throw new RangeError("The rest is not read");
    }).catch((error: unknown) => {
      if (isWhole) throw error;
    });
    if (!isWhole) {
      const text = decodeText(begun.bytes(), type, { isWhole });
      return text === undefined ? {} : { body: text, bodyTruncated: true };
    }
    const read = readBody(begun.bytes(), type);
    return read.encoding || read.body === null ? {} : { body: read.body };
  } catch {
    signal.throwIfAborted();
    return {};
  } finally {
    late.removeEventListener("abort", stop);
  }
}

function decoderOf(encoding: unknown): (() => Transform) | undefined {
  const isKnown = typeof encoding === "string" && Object.hasOwn(DECODERS, encoding);
  return isKnown ? DECODERS[encoding as keyof typeof DECODERS] : undefined;
}

/** Reads a body in pieces, decompressed. What `take` leaves is not read. Rejects with errors of the body, and with those of `take`. */
async function readThrough<T>(
  body: Readable,
  decode: (() => Transform) | undefined,
  take: (source: AsyncIterator<Buffer>) => Promise<T>,
): Promise<T> {
  let taken: T | undefined;
  const read = async (source: AsyncIterable<Buffer>): Promise<void> => {
    const iterator = source[Symbol.asyncIterator]();
    try {
      taken = await take(iterator);
    } finally {
      await iterator.return?.();
    }
  };
  if (decode) await pipeline(body, decode(), read);
  else await pipeline(body, read);
  return taken as T;
}

/** The first bytes of a body, in memory. */
class Beginning {
  readonly #chunks: Buffer[] = [];
  #size = 0;

  /** Reads up to a number of bytes, and a piece. Returns whether this is everything. */
  async fill(source: AsyncIterator<Buffer>, mostBytes: number): Promise<boolean> {
    for (;;) {
      const { done, value } = await source.next();
      if (done) return true;
      this.#chunks.push(value);
      this.#size += value.length;
      if (this.#size > mostBytes) return false;
    }
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  /** These bytes, and the rest of a body. */
  async *before(rest?: AsyncIterator<Buffer>): AsyncGenerator<Buffer, void> {
    yield* this.#chunks;
    if (rest) yield* everythingOf(rest);
  }
}

async function* everythingOf(source: AsyncIterator<Buffer>): AsyncGenerator<Buffer, void> {
  for (let next = await source.next(); !next.done; next = await source.next()) yield next.value;
}

function readBody(bytes: Buffer, contentType: string): Pick<HttpAnswer, "body" | "encoding"> {
  if (bytes.length === 0) return { body: null };
  const text = decodeText(bytes, contentType, { isWhole: true });
  if (text === undefined) return { body: bytes.toString("base64"), encoding: "base64" };
  if (!/^application\/json$|\+json$/.test(mediaTypeOf(contentType))) return { body: text };
  try {
    return { body: parseJson(text) };
  } catch {
    return { body: text };
  }
}

/**
 * Undefined for a body that is not text: invalid bytes for its encoding, and types without an encoding. The beginning of a body may end within a
 * character.
 */
function decodeText(bytes: Buffer, contentType: string, { isWhole }: { readonly isWhole: boolean }): string | undefined {
  const type = mediaTypeOf(contentType);
  if (type !== "" && !isTextMediaType(type)) return undefined;
  const charset = /charset="?([\w.:-]+)/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: !isWhole });
  } catch {
    return undefined;
  }
}

function mediaTypeOf(contentType: string): string {
  return contentType.toLowerCase().split(";", 1)[0]!.trim();
}

function toText(name: string, value: string | string[] | undefined): string | readonly string[] {
  if (name === "set-cookie") return [value ?? []].flat();
  return Array.isArray(value) ? value.join(", ") : (value ?? "");
}
