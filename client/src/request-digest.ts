import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { canonicalContent } from "@portico/plugins/conversations-runs/client";

/**
 * Digest of a query's body: `qrd1:` and the lowercase hex SHA-256 of its canonical JSON (RFC 8785), without its `originSocketId`
 * and `requestDigest`. It does not use the platform's digest, which browsers do not offer to pages loaded over plain HTTP. Throws
 * for a body without a canonical form, for example with an unpaired surrogate.
 */
export function requestDigest(body: Readonly<Record<string, unknown>>): string {
  return `qrd1:${bytesToHex(sha256(utf8ToBytes(canonicalContent(body))))}`;
}
