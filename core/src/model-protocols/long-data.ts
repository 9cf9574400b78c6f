import { parseExactly, writeExactly } from "./json.ts";
import { wellFormedJson } from "./well-formed-json.ts";

/** Shorter texts are parsed as they are: they cost little. No model returns thinking of this length, which conversions may encode. */
const LONG = 1024 * 1024;
/** Characters of long data that are parsed: more than any conversion looks at. */
const HEAD = 80 * 1024;
/** Where media and texts stand in requests of the protocols. */
const BEFORE = /"(?:data|url|image_url|file_data|text|content)"\s{0,8}:\s{0,8}$/;
/** Data of these addresses is decoded, so it is needed as a whole. */
const DECODED = /^data:text\//i;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** `\u00e9`: its end looks like data. */
const LONGEST_ESCAPE = 6;

/** Bytes that a conversion may add to a request before it needs another place: room for them follows a large body. */
export const ADDED_ROOM = 64 * 1024;

/** Stands in place of the rest of long data, with its place in the bytes. No text from outside has it. */
const MARK = `data${crypto.getRandomValues(new BigUint64Array(2)).join("")}at`;
const REST: RegExp = /^(\d{1,9})to(\d{1,9})end/;

/** Base64 of either alphabet. */
const BASE64 = new Uint8Array(256);
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_")
  BASE64[character.charCodeAt(0)] = 1;

/**
 * Parses the bytes of a JSON document as `parseExactly`, but long base64 in it only at its beginning: most of a large request is a few images
 * and documents, which a conversion passes on unread. `writeLongData` puts their rest back. Throws SyntaxError for invalid JSON.
 */
export function parseLongData(bytes: Uint8Array): unknown {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const pieces: string[] = [];
  let at = 0;
  for (const { from, to } of restsOf(buffer)) {
    pieces.push(buffer.toString("utf8", at, from), `${MARK}${from}to${to}end`);
    at = to;
  }
  pieces.push(buffer.toString("utf8", at));
  return parseExactly(pieces.join(""));
}

/**
 * The bytes of a JSON text, without lone surrogates, in which the data that `parseLongData` left out of `source` is whole. With `isOwn`, they
 * may take the place of `source` and of what follows it in its buffer, because a second copy of a large request would double its memory: then
 * nothing else may use the buffer. Throws as `JSON.stringify`.
 */
export function writeLongData(value: object, source: Uint8Array, isOwn = false): Uint8Array {
  const [first, ...others] = wellFormedJson(writeExactly(value)).split(MARK);
  const parts: Part[] = [];
  let length = 0;
  const add = (bytes: Uint8Array, from?: number) => {
    parts.push({ bytes, to: length, from });
    length += bytes.length;
  };
  add(Buffer.from(first!));
  for (const other of others) {
    const [place, from, to] = REST.exec(other)!;
    add(source.subarray(Number(from), Number(to)), Number(from));
    add(Buffer.from(other.slice(place.length)));
  }
  if (parts.length === 1) return parts[0]!.bytes;
  const room = new Uint8Array(source.buffer, source.byteOffset);
  const placed = isOwn && length <= room.length ? inPlace(parts) : undefined;
  const written = placed ? room : new Uint8Array(length);
  for (const { bytes, to } of placed ?? parts) written.set(bytes, to);
  return written.subarray(0, length);
}

/** Bytes of a written request, and where they go. `from`: where they are in the source, if they come from there. */
interface Part {
  readonly bytes: Uint8Array;
  readonly to: number;
  readonly from: number | undefined;
}

/**
 * The order in which parts can be written into their own source, so that none is overwritten before it has moved: from the beginning if all move
 * towards it, from the end if all move away. Undefined if some do this and some that.
 */
function inPlace(parts: readonly Part[]): readonly Part[] | undefined {
  const moved = parts.filter((part) => part.from !== undefined);
  if (moved.every(({ from, to }) => to <= from!)) return parts;
  return moved.every(({ from, to }) => to >= from!) ? parts.toReversed() : undefined;
}

/** The length of a text that may stand for longer data. */
export function dataLength(text: string): number {
  const at = text.indexOf(MARK);
  const found = at < 0 ? undefined : REST.exec(text.slice(at + MARK.length, at + MARK.length + 32));
  return found ? text.length - MARK.length - found[0].length + Number(found[2]) - Number(found[1]) : text.length;
}

/**
 * The parts of long data that no conversion reads. Between two quotation marks there is either a part of a string, or a part of the document
 * between two strings, which is no base64 alone. The part that is left out has no escapes, so it is the same wherever it is written.
 */
function* restsOf(bytes: Buffer): Generator<{ readonly from: number; readonly to: number }> {
  let open = bytes.indexOf(QUOTE);
  while (open >= 0 && bytes.length - open > LONG) {
    const close = bytes.indexOf(QUOTE, open + 1);
    if (close - open > LONG && BEFORE.test(bytes.toString("latin1", Math.max(0, open - 32), open))) {
      const from = open + 1 + HEAD;
      const isDecoded = DECODED.test(bytes.toString("latin1", open + 1, open + 16));
      const isCut = bytes.subarray(from - LONGEST_ESCAPE, from).includes(BACKSLASH);
      if (!isDecoded && !isCut && isData(bytes, from, close)) yield { from, to: close };
    }
    if (close < 0) return;
    open = close;
  }
}

function isData(bytes: Buffer, from: number, to: number): boolean {
  for (let at = from; at < to; at++) if (BASE64[bytes[at]!] === 0) return false;
  return true;
}
