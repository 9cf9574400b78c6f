import { isUtf8 } from "node:buffer";

/** Why bytes are not UTF-8 text, as the end of a sentence: `is UTF-16 text: save it as UTF-8`. Undefined for UTF-8. */
export function notUtf8(bytes: Uint8Array): string | undefined {
  if (isUtf16(bytes)) return "is UTF-16 text: save it as UTF-8";
  return isUtf8(bytes) ? undefined : "is not UTF-8 text";
}

/** By its byte order mark, or by the zero bytes of two first characters that ASCII has. Such a text without a mark is also valid UTF-8. */
function isUtf16(bytes: Uint8Array): boolean {
  const [a, b, c, d] = bytes;
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) return true;
  if (bytes.length < 4 || bytes.length % 2 !== 0) return false;
  return (a === 0 && c === 0 && b !== 0 && d !== 0) || (a !== 0 && c !== 0 && b === 0 && d === 0);
}
