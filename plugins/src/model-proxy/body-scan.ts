import {
  AFTER_VALUE,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  CLOSE_STRING,
  COLON,
  COMMA,
  END,
  FIRST_KEY,
  FIRST_STEP,
  FIRST_VALUE,
  GRAMMAR,
  KEY,
  OPEN_ARRAY,
  OPEN_KEY,
  OPEN_OBJECT,
  OPEN_TEXT,
  reasonFor,
  START,
  STRING,
  VALUE,
  WATCHED,
  WATCHED_COLON,
} from "./json-grammar.ts";
import { TextCapture } from "./text-capture.ts";

/** The members that the proxy reads from a body. It forwards the other bytes unread (specification 4.1). */
export type WatchedMember = "model" | "stream";

export interface BodyFacts {
  /** Decoded; undefined when it is absent, null or mistyped. An empty string is given as it is. */
  readonly model: string | undefined;
  /** Undefined when it is absent, null or mistyped. */
  readonly stream: boolean | undefined;
  /** The member whose value has the wrong type (`model` a string, `stream` a boolean); `model` when both have. */
  readonly mistyped: WatchedMember | undefined;
}

/** Containers that may be open at once, the top-level object counted. */
export const NESTING_LEVELS = 512;

/** Length of a `model` between its quotes, in bytes as the body spells it. */
export const MODEL_BYTES = 4096;

/** The body is not valid JSON. The message gives the position and what was expected. It contains nothing from the body. */
export class BodyInvalid extends Error {
  override readonly name = "BodyInvalid";
  /** Index of the invalid byte in the whole body; the body's length if the body is incomplete. */
  readonly offset: number;

  constructor(offset: number, reason: string) {
    super(`Invalid JSON body at byte ${offset}: ${reason}`);
    this.offset = offset;
  }
}

/**
 * Reads the facts of a whole body in memory. Use it only for small bodies, because it runs to the last byte without a pause.
 * Throws `BodyInvalid`.
 */
export function scanBody(bytes: Uint8Array): BodyFacts {
  const scan = new BodyScan();
  scan.push(bytes);
  return scan.end();
}

/**
 * Validates a JSON body while it streams past, and reads its top-level `model` and `stream`. Memory is constant, no chunk is
 * kept, and how the body is cut into chunks changes neither the facts nor the error.
 *
 * It accepts the same texts as `JSON.parse`, if they are an object at top level and valid UTF-8. It also refuses: more than NESTING_LEVELS
 * nested containers, a `model` longer than MODEL_BYTES, and a second `model` or `stream` at top level, because an upstream could
 * read the one that the proxy did not check. Like `JSON.parse`, it refuses a byte order mark.
 *
 * The facts can be read at any time. They contain what is known so far.
 */
export class BodyScan implements BodyFacts {
  #state = START;
  /** Bytes of the chunks before the present one. */
  #offset = 0;
  #failure: BodyInvalid | undefined;

  /** One bit per open container: set for an object. Small enough to live inside the JavaScript heap, where it is cheap. */
  readonly #containers = new Uint32Array(NESTING_LEVELS / 32);
  #depth = 0;
  #inObject = false;
  #afterString = AFTER_VALUE;

  /** Captures top-level keys and the model. */
  readonly #capture = new TextCapture();
  /** The watched member whose value is being read; undefined elsewhere, in keys too. */
  #member: WatchedMember | undefined;

  #hasModel = false;
  #hasStream = false;
  #model: string | undefined;
  #stream: boolean | undefined;
  #mistyped: WatchedMember | undefined;

  get model(): string | undefined {
    return this.#model;
  }

  get stream(): boolean | undefined {
    return this.#stream;
  }

  get mistyped(): WatchedMember | undefined {
    return this.#mistyped;
  }

  /**
   * Takes the next bytes; the caller may reuse the buffer afterwards. It runs to the last byte without a pause, so pass the chunks of a
   * socket (64 KiB take up to half a millisecond), not a whole body of many megabytes.
   * Throws `BodyInvalid` at the first invalid byte, and again at each later call.
   */
  push(chunk: Uint8Array): void {
    if (this.#failure !== undefined) throw this.#failure;
    const grammar = GRAMMAR;
    const length = chunk.length;
    let state = this.#state;
    for (let at = 0; at < length; at += 1) {
      const next = grammar[(state << 8) | (chunk[at] as number)] as number;
      if (next >= FIRST_STEP) {
        state = this.#step(next, state, chunk, at);
      } else {
        if (next === STRING && state === STRING) at = skipPlainText(chunk, at + 1) - 1;
        state = next;
      }
    }
    this.#state = state;
    if (this.#capture.isOpen) this.#carryCapture(chunk);
    this.#offset += length;
  }

  /** Ends the body and returns its facts. Throws `BodyInvalid` if the body is incomplete, or was refused before. */
  end(): BodyFacts {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#state !== END) throw this.#refuse(0, this.#offset === 0 ? "the body is empty" : "the body is cut short");
    return { model: this.#model, stream: this.#stream, mistyped: this.#mistyped };
  }

  /** Executes a step that the table cannot express, and returns the next state. */
  #step(step: number, state: number, chunk: Uint8Array, at: number): number {
    switch (step) {
      case OPEN_KEY:
        this.#afterString = COLON;
        if (this.#depth === 1) this.#capture.open(at + 1);
        return STRING;
      case OPEN_TEXT:
        this.#afterString = AFTER_VALUE;
        return STRING;
      case CLOSE_STRING:
        if (!this.#capture.isOpen) return this.#afterString;
        return this.#member === undefined ? this.#closeKey(chunk, at) : this.#closeModel(chunk, at);
      case COMMA:
        return this.#inObject ? KEY : VALUE;
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        return this.#open(step === OPEN_OBJECT, at);
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        if (this.#inObject !== (step === CLOSE_OBJECT)) throw this.#refuse(at, reasonFor(AFTER_VALUE, chunk[at] as number));
        return this.#close();
      case WATCHED:
        return this.#openWatched(chunk, at);
      default:
        throw this.#refuse(at, reasonFor(state, chunk[at] as number));
    }
  }

  #open(isObject: boolean, at: number): number {
    if (this.#depth === NESTING_LEVELS) throw this.#refuse(at, `more than ${NESTING_LEVELS} levels of nesting`);
    const word = this.#depth >> 5;
    const bit = 1 << (this.#depth & 31);
    const others = (this.#containers[word] as number) & ~bit;
    this.#containers[word] = isObject ? others | bit : others;
    this.#depth += 1;
    this.#inObject = isObject;
    return isObject ? FIRST_KEY : FIRST_VALUE;
  }

  #close(): number {
    this.#depth -= 1;
    if (this.#depth === 0) return END;
    const outer = this.#depth - 1;
    this.#inObject = (((this.#containers[outer >> 5] as number) >>> (outer & 31)) & 1) === 1;
    return AFTER_VALUE;
  }

  /** The first byte of a watched value shows its type. The rest is read like any other value. */
  #openWatched(chunk: Uint8Array, at: number): number {
    const byte = chunk[at] as number;
    const member = this.#member;
    this.#member = undefined;
    if (member === "model" && byte === QUOTE) {
      this.#member = member;
      this.#capture.open(at + 1);
    } else if (member === "stream" && (byte === LETTER_T || byte === LETTER_F)) {
      this.#stream = byte === LETTER_T;
    } else if (byte !== LETTER_N && this.#mistyped !== "model") {
      this.#mistyped = member;
    }
    const next = GRAMMAR[(VALUE << 8) | byte] as number;
    return next < FIRST_STEP ? next : this.#step(next, VALUE, chunk, at);
  }

  #closeModel(chunk: Uint8Array, at: number): number {
    if (this.#modelExcess(at) > 0) throw this.#refuse(at, MODEL_TOO_LONG);
    this.#model = this.#capture.text(chunk, at);
    this.#capture.close();
    this.#member = undefined;
    return AFTER_VALUE;
  }

  /** At the closing quote of a top-level key. */
  #closeKey(chunk: Uint8Array, at: number): number {
    const member = this.#watchedMember(chunk, at);
    this.#capture.close();
    if (member === undefined) return COLON;
    if (member === "model" ? this.#hasModel : this.#hasStream) throw this.#refuse(at, `a second "${member}"`);
    if (member === "model") this.#hasModel = true;
    else this.#hasStream = true;
    this.#member = member;
    return WATCHED_COLON;
  }

  #watchedMember(chunk: Uint8Array, at: number): WatchedMember | undefined {
    if (this.#capture.length(at) > LONGEST_KEY) return undefined;
    if (this.#capture.spells("model", chunk, at)) return "model";
    return this.#capture.spells("stream", chunk, at) ? "stream" : undefined;
  }

  /** The chunk ends inside a top-level key or the model. Only a bounded part of either is kept. */
  #carryCapture(chunk: Uint8Array): void {
    if (this.#modelExcess(chunk.length) > 0) throw this.#refuse(chunk.length, MODEL_TOO_LONG);
    if (this.#member === undefined && this.#capture.length(chunk.length) > LONGEST_KEY) this.#capture.close();
    else this.#capture.carry(chunk);
  }

  /** Number of bytes by which the model, up to `at`, exceeds its limit. */
  #modelExcess(at: number): number {
    return this.#member !== undefined && this.#capture.isOpen ? Math.max(0, this.#capture.length(at) - MODEL_BYTES) : 0;
  }

  /** The earlier of two faults is reported, independent of chunk borders: a model that exceeds its limit comes before a later fault in it. */
  #refuse(at: number, reason: string): BodyInvalid {
    const excess = this.#modelExcess(at);
    this.#failure = new BodyInvalid(this.#offset + at - excess, excess > 0 ? MODEL_TOO_LONG : reason);
    return this.#failure;
  }
}

const QUOTE = 0x22;
const LETTER_F = 0x66;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;

/** Maximum bytes of a watched key: `stream` with each letter written as an escape of six bytes. */
const LONGEST_KEY = 36;

const MODEL_TOO_LONG = `a "model" of more than ${MODEL_BYTES} bytes`;

/** A run of this many plain bytes is likely to continue. Reading words is then three times as fast, including the creation of the view. */
const LONG_RUN = 256;

/** The index of the first byte from `from` on that is not plain text: a quote, a backslash, a control character or non-ASCII. */
function skipPlainText(chunk: Uint8Array, from: number): number {
  const near = Math.min(from + LONG_RUN, chunk.length);
  let at = skipPlainBytes(chunk, from, near);
  if (at < near || near === chunk.length) return at;
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.length);
  const lastWord = chunk.length - 4;
  while (at <= lastWord && isPlainWord(view.getInt32(at, true))) at += 4;
  return skipPlainBytes(chunk, at, chunk.length);
}

function skipPlainBytes(chunk: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to && GRAMMAR[(STRING << 8) | (chunk[at] as number)] === STRING) at += 1;
  return at;
}

/**
 * Four bytes at once. A byte that stops a run shows in its highest bit: taking 0x20 from a control character borrows into it, as
 * does taking 1 from the difference to a quote from a zero byte, and likewise for the backslash. A non-ASCII byte keeps it set
 * in one of the two differences at least.
 */
function isPlainWord(word: number): boolean {
  const controls = word - 0x20202020;
  const quotes = (word ^ 0x22222222) - 0x01010101;
  const backslashes = (word ^ 0x5c5c5c5c) - 0x01010101;
  return ((controls | quotes | backslashes) & 0x80808080) === 0;
}
