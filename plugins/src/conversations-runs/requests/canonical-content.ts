import canonicalize from "canonicalize";

/**
 * What the digest of a query is made of (open points 7): the canonical JSON (RFC 8785) of its body without `originSocketId` and
 * `requestDigest`. Clients make theirs of it, too: nothing of Node stands here. Throws for a body that has none.
 */
export function canonicalContent(body: Readonly<Record<string, unknown>>): string {
  const { originSocketId: _socket, requestDigest: _digest, ...content } = body;
  const text = canonicalize(content);
  if (text === undefined) throw new TypeError("The body has no canonical JSON");
  return text;
}
