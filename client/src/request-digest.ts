import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import canonicalize from "canonicalize";

/**
 * Digest of a query's body without its `originSocketId` and `requestDigest`: `qrd1:` and the lowercase hex SHA-256 of its canonical JSON
 * (RFC 8785). Not by the platform's own digest, which browsers keep from pages that came over plain HTTP. Throws for what has no JSON.
 */
export function requestDigest(body: Readonly<Record<string, unknown>>): string {
  const { originSocketId: _socket, requestDigest: _digest, ...content } = body;
  const text = canonicalize(content);
  if (text === undefined) throw new TypeError("The body has no canonical JSON");
  return `qrd1:${bytesToHex(sha256(utf8ToBytes(text)))}`;
}
