import type { Fetch, SurfaceOptions } from "../surface.ts";
import { isOriginAllowed } from "./is-origin-allowed.ts";

/** What pages of other origins may read of an answer beside its body. */
const EXPOSED_HEADERS =
  "x-portico-request-id, x-portico-dropped, retry-after, etag, accept-ranges, content-range, content-disposition";
const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE";
/** Seconds that a browser remembers what it was allowed. */
const PREFLIGHT_SECONDS = "600";

/**
 * The origin rule of a whole surface (open points 4): pages of foreign origins are refused before anything else is looked at, pages of
 * allowed ones get what their browser needs to read the answer (CORS), and whoever names no origin meets nothing of this.
 */
export function withOrigins(inner: Fetch, { allowedOrigins, otherOrigins }: SurfaceOptions, refuse: Fetch): Fetch {
  const allowed = typeof allowedOrigins === "function" ? allowedOrigins : () => allowedOrigins;
  return async (request) => {
    const origin = request.headers.get("origin") ?? undefined;
    if (origin === undefined) return inner(request);
    const host = request.headers.get("host") ?? new URL(request.url).host;
    if (!isOriginAllowed({ origin, host }, allowed())) {
      return varying(await (otherOrigins === "as ever" ? inner : refuse)(request));
    }
    if (isOriginAllowed({ origin, host })) return varying(await inner(request));
    const requested = request.headers.get("access-control-request-headers");
    if (request.method === "OPTIONS" && request.headers.has("access-control-request-method")) {
      return crossOrigin(new Response(null, { status: 204 }), origin, {
        "access-control-allow-methods": METHODS,
        "access-control-max-age": PREFLIGHT_SECONDS,
        // Credentials are headers that a page must know, and never come along by themselves: any header may be sent.
        ...(requested !== null && { "access-control-allow-headers": requested }),
      });
    }
    return crossOrigin(await inner(request), origin, { "access-control-expose-headers": EXPOSED_HEADERS });
  };
}

function crossOrigin(response: Response, origin: string, more: Readonly<Record<string, string>>): Response {
  return withHeaders(response, { "access-control-allow-origin": origin, vary: "origin", ...more });
}

/** A cache between us and the browsers must not show one origin's answer to another. */
function varying(response: Response): Response {
  return withHeaders(response, { vary: "origin" });
}

/** A handler's own Response may have headers that cannot be changed. */
function withHeaders(response: Response, added: Readonly<Record<string, string>>): Response {
  try {
    for (const [name, value] of Object.entries(added)) response.headers.set(name, value);
    return response;
  } catch {
    const headers = new Headers([...response.headers, ...Object.entries(added)]);
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
  }
}
