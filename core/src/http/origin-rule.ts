import type { Middleware } from "h3";
import type { SurfaceOptions } from "../surface.ts";
import { isOriginAllowed } from "./is-origin-allowed.ts";
import type { SurfaceEvent } from "./surface-event.ts";

/** The headers of an answer that pages of other origins may read. */
const EXPOSED_HEADERS =
  "x-request-id, x-portico-request-id, x-portico-dropped, retry-after, etag, accept-ranges, content-range, content-disposition";
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
