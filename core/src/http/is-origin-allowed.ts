/** What a request says about where it comes from: its `Origin` and `Host` headers. */
export interface OriginFacts {
  readonly origin: string | undefined;
  readonly host: string | undefined;
}

/**
 * Whether a request may be answered (open points 4): it names no origin, as everything but browsers does; or the service's own, which is
 * the one with the host that it was sent to; or one of `allowed`, such as `https://desk.example`. The scheme of the own origin is not compared, since a
 * proxy in front may have taken TLS off.
 */
export function isOriginAllowed({ origin, host }: OriginFacts, allowed: readonly string[] = []): boolean {
  if (origin === undefined) return true;
  if (allowed.some((each) => each === origin || canonical(each) === origin)) return true;
  // Browsers send the canonical form only; anything else was not sent by one, or by several at once.
  if (canonical(origin) !== origin || host === undefined) return false;
  const { protocol } = new URL(origin);
  return canonical(`${protocol}//${host}`) === origin;
}

/** Undefined for what is no address of the web: those origins are compared letter by letter. */
function canonical(origin: string): string | undefined {
  const url = URL.parse(origin);
  return url && (url.protocol === "http:" || url.protocol === "https:") ? url.origin : undefined;
}
