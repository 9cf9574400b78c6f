import { PassThrough, type Readable, type Transform } from "node:stream";
import { BodyCut, BodySilent, BodyTooLarge, type Exchange, eachChunk, type ports, roomIn, takeArrived } from "@portico/core";
import { ADDED_ROOM, createDecoder, EncodingUnknown } from "@portico/core/model-protocols";
import { type BodyFacts, BodyInvalid, BodyScan } from "./body-scan.ts";
import { proxyErrors } from "./errors.ts";
import { CONVERTED_HERE_BYTES, GATHERED_BYTES, HELD_BYTES, REQUEST_BYTES } from "./limits.ts";
import { openSpool, type Spool } from "./spool.ts";

export interface ReceiveBodyOptions {
  readonly clock: ports.Clock;
  readonly spoolDir?: string | undefined;
  /** Checks that the bound provider serves the model; throws the error for the caller. Called once, as soon as the model is known. */
  readonly admit: (model: string) => void | Promise<void>;
}

/** A request body that may be sent to the upstream. */
export interface ReceivedBody {
  readonly facts: BodyFacts;
  readonly body: Uint8Array | Readable;
  /** Bytes of `body`, where they are known. */
  readonly length: number | undefined;
  /**
   * Set if the body is still arriving. Rejects if the rest is not JSON, too long or incomplete. `body` then fails before its last chunk, so
   * that no upstream receives a complete unchecked body.
   */
  readonly rest: Promise<void> | undefined;
}

/** A whole body, decoded and checked. */
export interface ScannedBody {
  readonly bytes: Buffer;
  readonly facts: BodyFacts;
}

/**
 * Receive a request body and check it while it arrives. A short body is returned whole. A longer body is forwarded as soon as its model is
 * known and served. If the model comes late, the body waits in a temporary file. Throws the proxy's declared errors.
 */
export async function receiveBody(exchange: Exchange, options: ReceiveBodyOptions): Promise<ReceivedBody> {
  const arrived = scanArrived(exchange, options.clock);
  if (arrived) {
    await options.admit(modelOf(arrived.facts));
    return { facts: arrived.facts, body: arrived.bytes, length: arrived.bytes.length, rest: undefined };
  }
  return new Promise((resolve, reject) => {
    const intake = new Intake(exchange, options, resolve);
    intake.run().catch((error: unknown) => {
      intake.fail(error);
      reject(error);
    });
  });
}

/** Receives a whole body into memory and decodes it, for requests that are converted. */
export async function gatherBody(exchange: Exchange, clock: ports.Clock): Promise<ScannedBody> {
  const arrived = scanArrived(exchange, clock);
  if (arrived) return arrived;
  const scan = new BodyScan();
  const room = roomFor(exchange);
  let filled = 0;
  const chunks: Buffer[] = [];
  await decoded(exchange, clock, (chunk) => {
    scan.push(chunk);
    if (chunks.length === 0 && filled + chunk.length <= room.length) filled += chunk.copy(room, filled);
    else chunks.push(chunk);
  });
  const parts = filled > 0 ? [room.subarray(0, filled), ...chunks] : chunks;
  return { bytes: parts.length === 1 ? parts[0]! : Buffer.concat(parts), facts: endOf(scan) };
}

/** The body that has arrived with its head, as most have. Undefined if bytes are missing or the body is encoded. */
function scanArrived(exchange: Exchange, clock: ports.Clock): ScannedBody | undefined {
  if (isEncoded(exchange)) return undefined;
  const bytes = takeArrived(exchange.body, limitsOf(exchange, clock));
  if (!bytes) return undefined;
  const scan = new BodyScan();
  try {
    scan.push(bytes);
  } catch (error) {
    throw translated(error);
  }
  return { bytes, facts: endOf(scan) };
}

/**
 * A buffer for a large body of declared length. Chunks are copied into it as they arrive, because joining them at the end would block the
 * event loop. Memory is used only as the buffer is filled.
 * A converted request takes the place of the body, so there is room for what is added to it.
 */
function roomFor(exchange: Exchange): Buffer {
  const length = declaredLength(exchange) ?? 0;
  return Buffer.allocUnsafeSlow(length > CONVERTED_HERE_BYTES && length <= REQUEST_BYTES ? length + ADDED_ROOM : 0);
}

/** The model that a body names. Throws the specified error if it is missing, and our own error if it is not a valid name. */
export function modelOf(facts: BodyFacts): string {
  if (facts.mistyped)
    throw proxyErrors.invalid_field(`${facts.mistyped}: expected a ${facts.mistyped === "model" ? "string" : "boolean"}`, {
      field: facts.mistyped,
    });
  if (!facts.model) throw proxyErrors.missing_model(undefined, { field: "model" });
  return facts.model;
}

class Intake {
  readonly #exchange: Exchange;
  readonly #options: ReceiveBodyOptions;
  readonly #resolve: (received: ReceivedBody) => void;
  readonly #scan = new BodyScan();
  #held: Buffer[] = [];
  #heldBytes = 0;
  #spool: Spool | undefined;
  #size = 0;
  /** Set when the body is forwarded while it arrives. The newest chunk then waits until the next chunk or the end shows that the body is valid. */
  #out: PassThrough | undefined;
  #last: Buffer | undefined;
  #finish: (() => void) | undefined;
  #abandon: ((error: unknown) => void) | undefined;

  constructor(exchange: Exchange, options: ReceiveBodyOptions, resolve: (received: ReceivedBody) => void) {
    this.#exchange = exchange;
    this.#options = options;
    this.#resolve = resolve;
  }

  async run(): Promise<void> {
    if (isEncoded(this.#exchange)) return this.#runEncoded();
    await guarded(
      eachChunk(this.#exchange.body, limitsOf(this.#exchange, this.#options.clock), (chunk) => {
        this.#scan.push(chunk);
        return this.#take(chunk, true);
      }),
    );
    await this.#end();
  }

  fail(error: unknown): void {
    this.#out?.destroy(error as Error);
    this.#abandon?.(error);
    void this.#spool?.discard();
  }

  /** The decoded form of an encoded body is checked. When the body is complete, it is forwarded as it was received. */
  async #runEncoded(): Promise<void> {
    await decoded(
      this.#exchange,
      this.#options.clock,
      (chunk) => this.#scan.push(chunk),
      (raw) => this.#take(raw, false),
    );
    await this.#end();
  }

  #take(chunk: Buffer, mayStream: boolean): void | Promise<void> {
    this.#size += chunk.length;
    if (this.#out) return this.#forward(chunk);
    if (this.#spool) return this.#spool.append(chunk);
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    if (mayStream && this.#heldBytes > GATHERED_BYTES && this.#scan.model) return this.#beginStream(this.#scan.model);
    if (this.#heldBytes > HELD_BYTES) return this.#beginSpool();
  }

  async #beginStream(model: string): Promise<void> {
    await this.#options.admit(model);
    const out = new PassThrough({ highWaterMark: GATHERED_BYTES });
    this.#out = out;
    this.#last = this.#held.pop();
    for (const chunk of this.#held) out.write(chunk);
    this.#held = [];
    const rest = new Promise<void>((resolve, reject) => {
      this.#finish = resolve;
      this.#abandon = reject;
    });
    // The code that sends the body upstream awaits `rest`. Until then, a rejection must not count as unhandled.
    rest.catch(() => {});
    out.on("error", () => {});
    const facts = { model, stream: this.#scan.stream, mistyped: undefined };
    this.#resolve({ facts, body: out, length: declaredLength(this.#exchange), rest });
  }

  #forward(chunk: Buffer): void | Promise<void> {
    const proven = this.#last!;
    this.#last = chunk;
    if (this.#out!.destroyed || this.#out!.write(proven)) return;
    return roomIn(this.#out!);
  }

  async #beginSpool(): Promise<void> {
    const held = this.#held;
    this.#held = [];
    this.#spool = await openSpool(this.#options.spoolDir);
    for (const chunk of held) await this.#spool.append(chunk);
  }

  async #end(): Promise<void> {
    const facts = endOf(this.#scan);
    const model = modelOf(facts);
    if (this.#out) {
      this.#out.end(this.#last);
      this.#finish?.();
      return;
    }
    await this.#options.admit(model);
    if (this.#spool) return this.#resolve({ facts, body: this.#spool.read(), length: this.#size, rest: undefined });
    const body = this.#held.length === 1 ? this.#held[0]! : Buffer.concat(this.#held);
    this.#resolve({ facts, body, length: body.length, rest: undefined });
  }
}

/** Reads the decoded chunks of a body. The limit applies to the encoded and the decoded size, so that a small body cannot expand without limit. */
async function decoded(
  exchange: Exchange,
  clock: ports.Clock,
  take: (chunk: Buffer) => void,
  takeRaw?: (chunk: Buffer) => void | Promise<void>,
): Promise<void> {
  const decoder = decoderOf(exchange);
  const limits = limitsOf(exchange, clock);
  if (!decoder) return guarded(eachChunk(exchange.body, limits, take));
  let size = 0;
  let failure: unknown;
  decoder.on("data", (chunk: Buffer) => {
    size += chunk.length;
    try {
      if (size > REQUEST_BYTES) throw new BodyTooLarge("The decoded body is too long");
      if (failure === undefined) take(chunk);
    } catch (error) {
      failure = error;
    }
  });
  decoder.on("error", () => {
    failure ??= proxyErrors.invalid_body("The body does not match its Content-Encoding");
  });
  const assertSound = () => {
    if (failure !== undefined) throw failure;
  };
  try {
    const ended = new Promise<void>((resolve) => void decoder.once("end", resolve).once("close", resolve));
    await guarded(
      eachChunk(exchange.body, limits, async (chunk) => {
        assertSound();
        await takeRaw?.(chunk);
        await written(decoder, chunk);
        assertSound();
      }),
    );
    decoder.end();
    await ended;
    await guarded(Promise.resolve().then(assertSound));
  } finally {
    decoder.destroy();
  }
}

function limitsOf(exchange: Exchange, clock: ports.Clock): Parameters<typeof eachChunk>[1] {
  return { limit: REQUEST_BYTES, declared: declaredLength(exchange), clock };
}

function isEncoded({ headers }: Exchange): boolean {
  const encoding = headers["content-encoding"];
  return encoding !== undefined && encoding !== "identity";
}

function declaredLength({ headers }: Exchange): number | undefined {
  const length = Number(headers["content-length"] ?? Number.NaN);
  return Number.isSafeInteger(length) ? length : undefined;
}

function decoderOf(exchange: Exchange): ReturnType<typeof createDecoder> {
  try {
    return createDecoder(exchange.headers["content-encoding"]);
  } catch (cause) {
    throw cause instanceof EncodingUnknown ? proxyErrors.unsupported_encoding(undefined, undefined, cause) : cause;
  }
}

function endOf(scan: BodyScan): BodyFacts {
  try {
    return scan.end();
  } catch (error) {
    throw translated(error);
  }
}

async function guarded(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    throw translated(error);
  }
}

/** Translates errors of receiving a body into the proxy's errors. */
function translated(error: unknown): unknown {
  if (error instanceof BodyInvalid) return proxyErrors.invalid_body(error.message, undefined, error);
  if (error instanceof BodyTooLarge) return proxyErrors.body_too_large(undefined, undefined, error);
  if (error instanceof BodyCut) return proxyErrors.upload_broken(undefined, undefined, error);
  if (error instanceof BodySilent) return proxyErrors.upload_silent(undefined, undefined, error);
  return error;
}

/** Resolves when the decoder has taken the chunk or has failed, because a failing decoder does not call back for that chunk. */
function written(decoder: Transform, chunk: Buffer): Promise<void> {
  if (decoder.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      decoder.off("close", done);
      resolve();
    };
    decoder.once("close", done);
    decoder.write(chunk, done);
  });
}
