import { isOriginAllowed, type RequestHead } from "@portico/core";

/**
 * Whether a request comes from a page of the service itself, or from no web page. Pages of `allowedOrigins`, which the surface answers
 * otherwise, count as foreign. `Sec-Fetch-Site` is the browser's own word, which no page can set. Browsers leave it out of requests to
 * addresses without TLS: then the origin counts.
 */
export function isOwnPage(head: RequestHead, ownOrigins: readonly string[]): boolean {
  const site = head.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin") return false;
  return isOriginAllowed({ origin: head.header("origin"), host: head.header("host") }, ownOrigins);
}
