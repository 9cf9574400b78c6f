import { Readable } from "node:stream";
import { MIMEType } from "node:util";
import { Dicer } from "@fastify/busboy";
import { type PartHead, readPartHead } from "./part-head.ts";
import type { StreamedBody } from "./streamed-body.ts";

/** One file on its way in. */
export interface Upload {
  /** As the caller wrote it, decoded: it may be empty or have a path, NUL and control characters in it. */
  readonly name: string;
  /** What the caller says of the file: lowercase, without parameters; `application/octet-stream` where it says nothing. */
  readonly mimeType: string;
  /**
   * The bytes of the file, with back pressure up to the caller. It ends only if the whole body was as it should be; otherwise it breaks, so that
   * whoever stores it keeps nothing.
   */
  readonly stream: Readable;
}

export interface UploadOptions {
  /** Name of the form's one field; any name where it is not given. */
  readonly field?: string;
  /** Bytes of the file; one more is refused with UploadTooLarge. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** The part of a form is no file; there is more than one part; the field has another name; anything else that is no such form. */
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

/** Bytes up to the first byte of the file: what may stand before the form, and the head of its part. */
const HEAD_BYTES = 16 * 1024;
/** Headers of the part. */
const HEAD_PAIRS = 32;
/** Bytes from the closing boundary on: what stands behind the form is nobody's. */
const TAIL_BYTES = 16 * 1024;
/** RFC 2046, 5.1.1: at most 70 characters. */
const BOUNDARY = /^[\w'()+,\-./:=? ]{0,69}[\w'()+,\-./:=?]$/;
/** A line end, two dashes and the longest boundary. */
const DELIMITER_BYTES = 2 + 2 + 70;

/**
 * Read a form (`multipart/form-data`, RFC 7578) of exactly one part, which is a file, while it arrives. Resolves when the head of the file is
 * there. Rejects, and later breaks the stream, with UploadInvalid, UploadTooLarge, the signal's reason, or what the body breaks with. The
 * body is read no further then.
 */
export async function openUpload(body: StreamedBody, options: UploadOptions): Promise<Upload> {
  options.signal.throwIfAborted();
  const stream = new FileStream(body.stream, boundaryOf(body.headers.contentType), options);
  const { fileName, mimeType } = await stream.head;
  return { name: fileName, mimeType, stream };
}

type FileHead = PartHead & { readonly fileName: string };

class FileStream extends Readable {
  readonly #source: Readable;
  readonly #boundary: string;
  readonly #options: UploadOptions;
  readonly #parser: Dicer;
  readonly #head = Promise.withResolvers<FileHead>();
  readonly #whole = Promise.withResolvers<void>();
  /** What came before the file. */
  #beginning: Buffer[] | undefined = [];
  #received = 0;
  #headBytes = 0;
  #size = 0;
  #parts = 0;
  #hasRoom = true;
  #roomTaken = () => {};
  /** The closing boundary was there, and the file has ended, which are told in any order. */
  #isClosed = false;
  #isEnded = false;

  constructor(source: Readable, boundary: string, options: UploadOptions) {
    super();
    this.#source = source;
    this.#boundary = boundary;
    this.#options = options;
    this.#parser = this.#createParser();
    // Whoever waits for one of them is told; that nobody does is no fault.
    for (const { promise } of [this.#head, this.#whole]) promise.catch(ignore);
    this.on("error", ignore);
    source.on("error", this.#onBroken);
    options.signal.addEventListener("abort", this.#onAbort, { once: true });
    void this.#readAll();
  }

  get head(): Promise<FileHead> {
    return this.#head.promise;
  }

  override _read(): void {
    this.#hasRoom = true;
    this.#roomTaken();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#options.signal.removeEventListener("abort", this.#onAbort);
    this.#parser.destroy();
    this.#source.destroy();
    const reason = error ?? new Error("The upload was given up");
    this.#head.reject(reason);
    this.#whole.reject(reason);
    this.#roomTaken();
    done(error);
  }

  readonly #onBroken = (error: Error) => void this.destroy(error);

  readonly #onAbort = () => {
    const { reason } = this.#options.signal;
    this.destroy(reason instanceof Error ? reason : new Error("The upload was aborted", { cause: reason }));
  };

  #fail(reason: UploadFlaw, message: string, cause?: unknown): void {
    this.destroy(new UploadInvalid(reason, message, { cause }));
  }

  async #readAll(): Promise<void> {
    try {
      for await (const chunk of this.#source as AsyncIterable<Buffer>) {
        await this.#take(chunk);
        if (!this.#hasRoom && !this.destroyed) await new Promise<void>((resolve) => (this.#roomTaken = resolve));
        if (this.destroyed) return;
      }
      this.#parser.end();
      await this.#whole.promise;
      this.#checkTail();
      if (!this.destroyed) this.push(null);
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  async #take(chunk: Buffer): Promise<void> {
    if (!this.#beginning) return this.#parse(chunk);
    // The parser holds back what may become a boundary: it tells of a head that much later.
    const most = HEAD_BYTES + DELIMITER_BYTES;
    const part = chunk.subarray(0, most - this.#received);
    this.#beginning.push(part);
    await this.#parse(part);
    if (this.#beginning && this.#received >= most) return this.#fail("malformed", "The file does not begin soon enough");
    if (part.length < chunk.length) await this.#parse(chunk.subarray(part.length));
  }

  /** Resolves when the parser is done with the bytes. */
  async #parse(bytes: Buffer): Promise<void> {
    if (this.destroyed) return;
    this.#received += bytes.length;
    if (this.#isClosed) return this.#checkTail();
    await new Promise<void>((resolve) => this.#parser.write(bytes, () => resolve()));
  }

  #createParser(): Dicer {
    const parser = new Dicer({ boundary: this.#boundary, maxHeaderPairs: HEAD_PAIRS + 1 });
    parser.on("error", (cause) => this.#fail("malformed", "The form has no end", cause));
    parser.on("part", (part) => {
      part.on("error", ignore);
      if (++this.#parts > 1) return this.#fail("second_part", "The form has more than one part");
      part.on("header", (headers) => this.#begin(headers as Record<string, string[]>));
      part.on("data", (bytes: Buffer) => this.#give(bytes));
      part.on("end", () => {
        this.#isEnded = true;
        if (this.#isClosed) this.#whole.resolve();
      });
    });
    parser.on("finish", () => {
      this.#isClosed = true;
      if (this.#beginning) return this.#fail(this.#parts > 0 ? "malformed" : "no_file", "The form has no file");
      if (this.#isEnded) this.#whole.resolve();
    });
    return parser;
  }

  #begin(headers: Readonly<Record<string, readonly string[]>>): void {
    const beginning = Buffer.concat(this.#beginning!);
    this.#beginning = undefined;
    this.#headBytes = headLength(beginning, this.#boundary);
    const head = readPartHead(headers);
    const { field } = this.#options;
    if (!head || this.#headBytes === 0 || this.#headBytes > HEAD_BYTES || Object.values(headers).flat().length > HEAD_PAIRS) {
      return this.#fail("malformed", "The part of the form has no head that could be read");
    }
    const { fileName } = head;
    if (fileName === undefined) return this.#fail("no_file", "The part of the form is no file");
    if (field !== undefined && head.field !== field) return this.#fail("wrong_field", `The form's field is not named "${field}"`);
    this.#head.resolve({ ...head, fileName });
  }

  #give(bytes: Buffer): void {
    this.#size += bytes.length;
    if (this.#size > this.#options.maxBytes) {
      this.destroy(new UploadTooLarge(`The file is longer than ${this.#options.maxBytes} bytes`));
    } else if (!this.destroyed && !this.push(bytes)) {
      this.#hasRoom = false;
    }
  }

  #checkTail(): void {
    // Bytes of the file may still be on their way.
    if (!this.#isEnded) return;
    const tail = this.#received - this.#headBytes - this.#size;
    if (tail > TAIL_BYTES) this.#fail("malformed", "Too much stands behind the form");
  }
}

/** Where the file begins; 0 where the line of the boundary has more on it, which the parser would take for a header. */
function headLength(beginning: Buffer, boundary: string): number {
  const text = `\r\n${beginning.toString("latin1")}`;
  const delimiter = `\r\n--${boundary}`;
  const start = text.indexOf(delimiter) + delimiter.length;
  return text.startsWith("\r\n", start) ? text.indexOf("\r\n\r\n", start) + 2 : 0;
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

function ignore(): void {}
