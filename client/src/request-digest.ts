import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { canonicalContent } from "@portico/plugins/conversations-runs/canonical-content";

/**
 * Digest of a query's body: `qrd1:` and the lowercase hex SHA-256 of its canonical JSON (RFC 8785), without its `originSocketId` and
 * `requestDigest`. Not by the platform's own digest, which browsers keep from pages that came over plain HTTP. Throws for a body that has
 * none, such as one with half a surrogate pair.
 */
export function requestDigest(body: Readonly<Record<string, unknown>>): string {
  return `qrd1:${bytesToHex(sha256(utf8ToBytes(canonicalContent(body))))}`;
}
