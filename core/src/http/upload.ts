import { Readable } from "node:stream";
import { MIMEType } from "node:util";
import { parse } from "content-disposition";
import type { StreamedBody } from "./streamed-body.ts";

/** One file that is being received. */
export interface Upload {
  /** As the caller wrote it, decoded. It may be empty, and may contain a path, NUL and control characters. */
  readonly name: string;
  /** The media type that the caller declares: lowercase, without parameters. Default: `application/octet-stream`. */
  readonly mimeType: string;
  /**
   * The bytes of the file, with backpressure up to the caller. It ends only if the whole body is valid. Otherwise it breaks, so
   * that its consumer stores nothing.
   */
  readonly stream: Readable;
}

/** Options of `openUpload`. */
export interface UploadOptions {
  /** Name of the form's only field. Default: any name. */
  readonly field?: string;
  /** Bytes of the file. One more byte is refused with UploadTooLarge. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** The part is not a file; there is more than one part; the field has another name; any other invalid form. */
export type UploadFlaw = "no_file" | "second_part" | "wrong_field" | "malformed";

/** The body is not a form of exactly one file. */
export class UploadInvalid extends Error {
  override readonly name = "UploadInvalid";
  readonly reason: UploadFlaw;

  constructor(reason: UploadFlaw, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** The file is longer than its route allows. */
export class UploadTooLarge extends Error {
  override readonly name = "UploadTooLarge";
}

/** Maximum bytes before the first byte of the file: the text before the form, and the head of its part. */
const HEAD_BYTES = 16 * 1024;
/** Maximum bytes after the form. They are ignored. */
const TAIL_BYTES = 16 * 1024;
/** RFC 2046, 5.1.1 */
const BOUNDARY = /^[\w'()+,\-./:=? ]{0,69}[\w'()+,\-./:=?]$/;

/**
 * Read a form (`multipart/form-data`, RFC 7578) of exactly one part, which is a file, while it arrives. Resolves when the head of
 * the file has arrived. Rejects, and later breaks the stream, with UploadInvalid, UploadTooLarge, the signal's reason, or the
 * body's error. The body is read no further then.
 *
 * It does not use an existing parser. @fastify/busboy accepts malformed forms (half an end twice, a header on the line of the
 * boundary). busboy refuses names with a control character, which this service wants to clean itself.
 */
export async function openUpload(body: StreamedBody, options: UploadOptions): Promise<Upload> {
  options.signal.throwIfAborted();
  const stream = new FileStream(body.stream, boundaryOf(body.headers.contentType), options);
  return { ...(await stream.head), stream };
}

/** Position of the next byte in the form. */
type Place = "head" | "file" | "end" | "behind";

class FileStream extends Readable {
  readonly #source: Readable;
  readonly #options: UploadOptions;
  /** Separates the bytes of a part from what follows. Before the first part, its line end may be missing. */
  readonly #delimiter: Buffer;
  readonly #head = Promise.withResolvers<Omit<Upload, "stream">>();
  #place: Place = "head";
  /** Received bytes that are not classified yet. */
  #held: Buffer = CRLF;
  /** Rest of the empty line before the file. */
  #lead = CRLF.length;
  #size = 0;
  #tail = 0;
  #hasRoom = true;
  #roomTaken = () => {};

  constructor(source: Readable, boundary: string, options: UploadOptions) {
    super();
    this.#source = source;
    this.#options = options;
    this.#delimiter = Buffer.from(`\r\n--${boundary}`);
    this.on("error", ignore);
    options.signal.addEventListener("abort", this.#onAbort, { once: true });
    void this.#readAll();
  }

  get head(): Promise<Omit<Upload, "stream">> {
    return this.#head.promise;
  }

  override _read(): void {
    this.#hasRoom = true;
    this.#roomTaken();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#source.destroy();
    this.#head.reject(error);
    done(error);
  }

  readonly #onAbort = () => {
    const { reason } = this.#options.signal;
    this.destroy(reason instanceof Error ? reason : new Error("The upload was aborted", { cause: reason }));
  };

  async #readAll(): Promise<void> {
    try {
      for await (const chunk of this.#source as AsyncIterable<Buffer>) {
        this.#take(chunk);
        if (!this.#hasRoom) await new Promise<void>((resolve) => (this.#roomTaken = resolve));
        if (this.destroyed) return;
      }
      if (this.#place !== "behind") throw this.#unfinished();
      this.push(null);
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  #take(chunk: Buffer): void {
    if (this.#place === "behind") return this.#skip(chunk);
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = NOTHING;
    switch (this.#place) {
      case "head":
        return this.#takeHead(bytes);
      case "file":
        return this.#takeFile(bytes);
      case "end":
        return this.#takeEnd(bytes);
    }
  }

  #takeHead(bytes: Buffer): void {
    // The boundary adds one line end that did not arrive.
    const most = HEAD_BYTES + CRLF.length;
    const start = bytes.indexOf(this.#delimiter);
    const line = start + this.#delimiter.length;
    const end = start < 0 ? -1 : bytes.indexOf("\r\n\r\n", line);
    if (end < 0 || end + 4 > most) {
      if (bytes.length >= most) throw new UploadInvalid("malformed", "The file does not begin soon enough");
      this.#held = bytes;
      return;
    }
    this.#head.resolve(this.#readHead(bytes.toString("latin1", line, end)));
    this.#place = "file";
    this.#takeFile(bytes.subarray(end + 2));
  }

  /** Reads the text between the boundary and the empty line. */
  #readHead(text: string): Omit<Upload, "stream"> {
    // Gateways may add blanks behind a boundary (RFC 2046, 5.1.1).
    const line = /^[ \t]*\r\n/.exec(text)?.[0];
    const isWhole = line !== undefined && !text.includes(this.#delimiter.toString());
    const head = isWhole ? readPartHead(text.slice(line.length)) : undefined;
    if (!head) throw new UploadInvalid("malformed", "The part of the form has no head that could be read");
    const { field, fileName: name, mimeType } = head;
    if (name === undefined) throw new UploadInvalid("no_file", "The part of the form is no file");
    if (field !== (this.#options.field ?? field)) {
      throw new UploadInvalid("wrong_field", `The form's field is not named "${this.#options.field}"`);
    }
    return { name, mimeType };
  }

  #takeFile(bytes: Buffer): void {
    const at = bytes.indexOf(this.#delimiter);
    const end = at < 0 ? bytes.length - beginningAtEnd(bytes, this.#delimiter) : at;
    this.#give(bytes.subarray(0, end));
    if (at < 0) {
      this.#held = bytes.subarray(end);
      return;
    }
    // Other parsers would see the boundary of a part that has only a head.
    if (this.#lead > 0) throw new UploadInvalid("malformed", "The part of the form has no file under its head");
    this.#place = "end";
    this.#takeEnd(bytes.subarray(at + this.#delimiter.length));
  }

  #give(arrived: Buffer): void {
    const bytes = arrived.subarray(this.#lead);
    this.#lead -= arrived.length - bytes.length;
    this.#size += bytes.length;
    const { maxBytes } = this.#options;
    if (this.#size > maxBytes) throw new UploadTooLarge(`The file is longer than ${maxBytes} bytes`);
    if (bytes.length > 0 && !this.push(bytes)) this.#hasRoom = false;
  }

  #takeEnd(bytes: Buffer): void {
    let at = 0;
    while (bytes[at] === SPACE || bytes[at] === TAB) at++;
    if (bytes.length < at + 2) {
      if (at > TAIL_BYTES) throw new UploadInvalid("malformed", "Too much stands behind the boundary");
      this.#held = bytes;
      return;
    }
    const mark = at > 0 && bytes[at] === DASH ? "" : bytes.toString("latin1", at, at + 2);
    if (mark === "\r\n") throw new UploadInvalid("second_part", "The form has more than one part");
    if (mark !== "--") throw new UploadInvalid("malformed", "The boundary stands in the file");
    this.#place = "behind";
    this.#skip(bytes.subarray(2));
  }

  #skip(bytes: Buffer): void {
    this.#tail += bytes.length;
    if (this.#tail > TAIL_BYTES) throw new UploadInvalid("malformed", "Too much stands behind the form");
  }

  #unfinished(): UploadInvalid {
    const start = this.#held.indexOf(this.#delimiter);
    const isEmpty = this.#place === "head" && start >= 0 && start === this.#held.indexOf(`${this.#delimiter}--`);
    return new UploadInvalid(isEmpty ? "no_file" : "malformed", isEmpty ? "The form has no part" : "The form has no end");
  }
}

/** Number of bytes at the end that could begin a delimiter. A carriage return occurs only at the start of a delimiter. */
function beginningAtEnd(bytes: Buffer, delimiter: Buffer): number {
  const at = bytes.lastIndexOf("\r");
  const length = at < 0 ? delimiter.length : bytes.length - at;
  return length < delimiter.length && bytes.subarray(at).equals(delimiter.subarray(0, length)) ? length : 0;
}

function boundaryOf(contentType: string): string {
  const boundary = parametersOf(contentType)?.get("boundary") ?? "";
  if (!BOUNDARY.test(boundary)) throw new UploadInvalid("malformed", "The Content-Type has no boundary that could be one");
  return boundary;
}

function parametersOf(contentType: string): MIMEType["params"] | undefined {
  try {
    return new MIMEType(contentType).params;
  } catch {
    return undefined;
  }
}

const CRLF = Buffer.from("\r\n");
const [TAB, SPACE, DASH] = [0x09, 0x20, 0x2d];
const NOTHING = Buffer.alloc(0);

function ignore(): void {}

/** The head of one part of a form. */
interface PartHead {
  readonly field: string;
  /** As the caller wrote it; undefined if the part is a field and not a file. */
  readonly fileName: string | undefined;
  /** Lowercase, without parameters. */
  readonly mimeType: string;
}

/** Maximum number of headers of one part. No client sends more than four. */
const HEADERS = 32;
const UNENCODED: ReadonlySet<string> = new Set(["7bit", "8bit", "binary"]);

/**
 * Parses the head of a part in latin1, without the empty line at its end. Undefined for an invalid part of a form (RFC 7578), and
 * for an encoded file, because its bytes would not be those of the file.
 */
function readPartHead(text: string): PartHead | undefined {
  const headers = readHeaders(text);
  const [disposition, second] = headers?.get("content-disposition") ?? [];
  if (!headers || disposition === undefined || second !== undefined) return undefined;
  if (!UNENCODED.has(headers.get("content-transfer-encoding")?.[0]?.toLowerCase() ?? "binary")) return undefined;
  const { type, parameters } = parse(withoutPairs(decode(disposition)), { multipart: true });
  const { name: field, filename: fileName } = parameters as Readonly<Record<string, string | undefined>>;
  if (type !== "form-data" || field === undefined) return undefined;
  return { field, fileName, mimeType: essenceOf(headers.get("content-type")?.[0]) };
}

/** By lowercase name. Undefined if a line is not a header or there are too many. */
function readHeaders(text: string): ReadonlyMap<string, readonly string[]> | undefined {
  // A line that begins with white space continues the line before (RFC 5322, 2.2.3).
  const lines = text.replaceAll(/\r\n(?=[ \t])/g, "").split("\r\n");
  if (lines.length > HEADERS) return undefined;
  const headers = new Map<string, string[]>();
  for (const line of lines) {
    const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):([^\r\n]*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    const key = name.toLowerCase();
    headers.set(key, [...(headers.get(key) ?? []), value.trim()]);
  }
  return headers;
}

/**
 * Browsers write a quote in a name as `%22`. Other programs follow RFC 7578 and MIME: `\"`, with `\\` for a backslash. The parser
 * knows only the browsers' way, because browsers do not escape a backslash. A name from a browser never has a backslash before a
 * quote.
 */
function withoutPairs(disposition: string): string {
  return disposition.replaceAll(/\\(["\\])/g, (_pair, escaped: string) => (escaped === '"' ? "%22" : escaped));
}

/** Current forms use UTF-8. Text that is not valid UTF-8 stays latin1. */
function decode(latin1: string): string {
  try {
    return utf8.decode(Buffer.from(latin1, "latin1"));
  } catch {
    return latin1;
  }
}

function essenceOf(contentType: string | undefined): string {
  try {
    return new MIMEType(contentType ?? "").essence;
  } catch {
    return "application/octet-stream";
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
