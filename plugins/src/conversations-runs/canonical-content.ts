import canonicalize from "canonicalize";

/**
 * The input of a query's digest (open points 7): the canonical JSON (RFC 8785) of its body without `originSocketId` and `requestDigest`.
 * Clients compute theirs with it, too, so it uses nothing of Node. Throws for a body without a canonical form.
 */
export function canonicalContent(body: Readonly<Record<string, unknown>>): string {
  const { originSocketId: _socket, requestDigest: _digest, ...content } = body;
  const text = canonicalize(content);
  if (text === undefined) throw new TypeError("The body has no canonical JSON");
  return text;
}
