import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";

/** A decoder for one Content-Encoding; undefined if the body is not encoded. Throws EncodingUnknown. */
export function createDecoder(encoding: string | readonly string[] | undefined): Transform | undefined {
  const name = (typeof encoding === "string" ? encoding : (encoding?.join(",") ?? "")).trim().toLowerCase();
  switch (name) {
    case "":
    case "identity":
      return undefined;
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      return createInflate();
    case "br":
      return createBrotliDecompress();
    case "zstd":
      return createZstdDecompress();
    default:
      throw new EncodingUnknown("The content encoding is not supported");
  }
}

/** An unregistered coding, or several combined codings. */
export class EncodingUnknown extends Error {
  override readonly name = "EncodingUnknown";
}
