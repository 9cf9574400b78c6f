import { Transform, type TransformCallback } from "node:stream";
import { EventStreamCodec, type Message } from "@smithy/eventstream-codec";
import { ports } from "@portico/core";
import { isJsonObject, streamErrorEvent } from "@portico/core/model-protocols";
import { exceptionToError } from "./exceptions.ts";

/** The largest frame: 16 MiB of payload, 128 KiB of headers, and 16 bytes of lengths and checksums (docs.aws.amazon.com, event stream encoding). */
const FRAME_BYTES = 16 * 1024 * 1024 + 128 * 1024 + 16;
/** The length of a frame is its first number. */
const LENGTH_BYTES = 4;
/** Lengths and checksums of a frame without headers and payload. */
const LEAST_FRAME_BYTES = 16;

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === "string" ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")),
  (text) => Buffer.from(text, "utf8"),
);

/**
 * Turns the event stream of `InvokeModelWithResponseStream` into the server-sent events of the Messages protocol. An exception of the service
 * becomes the event `error`, which ends the answer. A frame that is broken, cut or too long fails the stream with ModelUnreachable.
 */
export class EventStreamUnpacker extends Transform {
  readonly #provider: string;
  readonly #frames = new FrameReader();
  #isOver = false;

  constructor(provider: string) {
    super();
    this.#provider = provider;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    try {
      for (const frame of this.#frames.push(chunk)) if (!this.#isOver) this.push(this.#eventOf(frame));
      done();
    } catch (cause) {
      done(new ports.ModelUnreachable(`Provider "${this.#provider}" sent a broken event stream`, { cause }));
    }
  }

  override _flush(done: TransformCallback): void {
    done(this.#frames.isInFrame ? new ports.ModelUnreachable(`Provider "${this.#provider}" ended its answer early`) : null);
  }

  #eventOf(frame: Uint8Array): string {
    const message = codec.decode(frame);
    const kind = headerOf(message, ":message-type");
    if (kind === "event") return headerOf(message, ":event-type") === "chunk" ? chunkEvent(message) : "";
    this.#isOver = true;
    const name = headerOf(message, ":exception-type") ?? headerOf(message, ":error-code") ?? "";
    const text = Buffer.from(message.body).toString("utf8") || (headerOf(message, ":error-message") ?? "");
    return streamErrorEvent("messages", exceptionToError(name, text));
  }
}

/** Splits bytes into frames. Holds at most one incomplete frame. */
class FrameReader {
  #held: Buffer[] = [];
  #size = 0;
  /** Bytes of the frame that is arriving. Undefined until its length is known. */
  #needed: number | undefined;

  get isInFrame(): boolean {
    return this.#size > 0;
  }

  *push(chunk: Buffer): Generator<Uint8Array> {
    this.#held.push(chunk);
    this.#size += chunk.length;
    while (this.#size >= (this.#needed ??= this.#length())) {
      const bytes = this.#held.length === 1 ? this.#held[0]! : Buffer.concat(this.#held);
      const frame = bytes.subarray(0, this.#needed);
      const rest = bytes.subarray(this.#needed);
      this.#held = rest.length > 0 ? [rest] : [];
      this.#size = rest.length;
      this.#needed = undefined;
      yield frame;
    }
    if (this.#needed === Infinity) this.#needed = undefined;
  }

  /** Infinity if the length has not arrived. */
  #length(): number {
    if (this.#size < LENGTH_BYTES) return Infinity;
    if (this.#held[0]!.length < LENGTH_BYTES) this.#held = [Buffer.concat(this.#held)];
    const length = this.#held[0]!.readUInt32BE(0);
    if (length < LEAST_FRAME_BYTES || length > FRAME_BYTES) throw new Error("The length of a frame is invalid");
    return length;
  }
}

/** The Messages event inside a chunk: base64 in the field `bytes`. Empty for a chunk without a named event, such as a keep-alive. */
function chunkEvent({ body }: Message): string {
  const payload: unknown = JSON.parse(Buffer.from(body).toString("utf8"));
  if (!isJsonObject(payload) || typeof payload.bytes !== "string") return "";
  const text = Buffer.from(payload.bytes, "base64").toString("utf8");
  const event: unknown = JSON.parse(text);
  if (!isJsonObject(event) || typeof event.type !== "string" || !/^\w{1,64}$/.test(event.type)) return "";
  // Line ends of JSON are blanks between its tokens. In an event, a line end would end the data.
  return `event: ${event.type}\ndata: ${text.replace(/[\r\n]+/g, " ")}\n\n`;
}

function headerOf({ headers }: Message, name: string): string | undefined {
  const value = headers[name]?.value;
  return typeof value === "string" ? value : undefined;
}
