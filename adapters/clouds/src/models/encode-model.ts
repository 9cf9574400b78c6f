/**
 * A model's name as one segment of a path. Only what a segment cannot contain is encoded (RFC 3986, 3.3), as the vendor's libraries do: the
 * colons of an ARN stay, and its slash becomes `%2F` (anthropics/anthropic-sdk-go#185).
 */
export function encodeModel(model: string): string {
  const encoded = model.replace(/[^A-Za-z0-9\-._~!$&'()*+,;=:@]+/g, encodeURIComponent);
  // These two would name another path.
  return encoded === "." || encoded === ".." ? encoded.replaceAll(".", "%2E") : encoded;
}
