/** The facts about a request's origin: its `Origin` and `Host` headers. */
export interface OriginFacts {
  readonly origin: string | undefined;
  readonly host: string | undefined;
}

/**
 * Whether a request may be answered (open points 4). It may if it has no `Origin` (only browsers send one), if its origin is the
 * service's own, or if its origin is in `allowed`, such as `https://desk.example`. The service's own origin has the host that the
 * request was sent to. Its scheme is not compared, because a proxy in front may have terminated TLS.
 */
export function isOriginAllowed({ origin, host }: OriginFacts, allowed: readonly string[] = []): boolean {
  if (origin === undefined) return true;
  if (allowed.some((each) => each === origin || canonical(each) === origin)) return true;
  // Browsers send only the canonical form. Any other form does not come from a single browser.
  if (canonical(origin) !== origin || host === undefined) return false;
  const { protocol } = new URL(origin);
  return canonical(`${protocol}//${host}`) === origin;
}

/** Undefined for an origin that is not a web address. Such origins are compared as text. */
function canonical(origin: string): string | undefined {
  const url = URL.parse(origin);
  return url && (url.protocol === "http:" || url.protocol === "https:") ? url.origin : undefined;
}
