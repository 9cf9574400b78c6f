import { hash } from "node:crypto";
import canonicalize from "canonicalize";

/**
 * Digest of a query's body without its `originSocketId` and `requestDigest` (open points 7): `qrd1:` and the lowercase hex SHA-256 of its
 * canonical JSON (RFC 8785). Throws TypeError for a body that has none.
 */
export function requestDigest(body: Readonly<Record<string, unknown>>): string {
  const { originSocketId: _socket, requestDigest: _digest, ...content } = body;
  const text = canonicalize(content);
  if (text === undefined) throw new TypeError("The body has no canonical JSON");
  return `qrd1:${hash("sha256", text)}`;
}
