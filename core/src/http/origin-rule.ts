import type { Middleware } from "h3";
import type { SurfaceOptions } from "./surface.ts";
import type { SurfaceEvent } from "./surface-event.ts";

/** The headers of an answer that pages of other origins may read. */
const EXPOSED_HEADERS =
  "x-request-id, x-portico-request-id, x-portico-dropped, retry-after, preference-applied, etag, accept-ranges, content-range, content-disposition";
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE";
/** Seconds that a browser caches a preflight answer. */
const PREFLIGHT_SECONDS = "600";

/**
 * The origin rule of a whole surface (open points 4), as the first middleware of its h3 app. Pages of foreign origins are refused
 * before any other check, except at paths of routes with `otherOrigins`. Answers to pages of allowed origins get the CORS headers. Requests
 * without an origin are unaffected.
 */
export function originRule(
  { allowedOrigins, otherOrigins }: SurfaceOptions,
  refuse: (event: SurfaceEvent) => Promise<Response>,
  isAnsweredAt: (path: string) => boolean = () => false,
): Middleware {
  const isAnswered = otherOrigins === "answered";
  const allowed = typeof allowedOrigins === "function" ? allowedOrigins : () => allowedOrigins;
  return (event, next) => {
    const { headers, method, url } = event.req;
    const origin = headers.get("origin") ?? undefined;
    if (origin === undefined) return next();
    const host = headers.get("host") ?? new URL(url).host;
    // A cache in front of the service must not serve the answer for one origin to another.
    if (!isOriginAllowed({ origin, host }, allowed())) {
      stage(event, { vary: "origin" });
      return isAnswered || isAnsweredAt(new URL(url).pathname) ? next() : refuse(event as SurfaceEvent);
    }
    if (isOriginAllowed({ origin, host })) {
      stage(event, { vary: "origin" });
      return next();
    }
    stage(event, { "access-control-allow-origin": origin, vary: "origin" });
    if (method === "OPTIONS" && headers.has("access-control-request-method")) {
      const requested = headers.get("access-control-request-headers");
      stage(event, {
        "access-control-allow-methods": METHODS,
        "access-control-max-age": PREFLIGHT_SECONDS,
        // Credentials are headers that a page must know, and browsers never add them automatically. Any header may therefore be
        // sent.
        ...(requested !== null && { "access-control-allow-headers": requested }),
      });
      return new Response(null, { status: 204 });
    }
    stage(event, { "access-control-expose-headers": EXPOSED_HEADERS });
    return next();
  };
}

/** Sets headers on the answer, for any outcome. */
function stage(event: Parameters<Middleware>[0], headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) {
    event.res.headers.set(name, value);
    event.res.errHeaders.set(name, value);
  }
}

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
