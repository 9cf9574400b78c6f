import type { IncomingMessage } from "node:http";
import type { OriginFacts } from "@portico/core";

/** Why a request is refused before it reaches Engine.IO, as an HTTP answer. */
export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface DoorRules {
  readonly allowOrigin: (facts: OriginFacts) => boolean;
  readonly maxMessageBytes: number;
}

/** Checks the head of a request. The origin comes first (open points 4): a caller with a forbidden origin learns nothing else. */
export function refusalOf(request: IncomingMessage, kind: "request" | "upgrade", rules: DoorRules): Refusal | undefined {
  const { origin, host } = request.headers;
  if (!rules.allowOrigin({ origin, host })) return FORBIDDEN;
  if (request.method === "OPTIONS") return undefined;
  if (request.method !== "GET" && request.method !== "POST") return WRONG_METHOD;
  if (!isQuerySound(request.url ?? "", kind)) return UNSOUND;
  if (Number(request.headers["content-length"] ?? 0) > rules.maxMessageBytes) return TOO_LARGE;
  return undefined;
}

/** Headers that browsers need to read an answer across origins, for an allowed origin. */
export function crossOriginHeaders(request: IncomingMessage): Readonly<Record<string, string>> {
  const { origin } = request.headers;
  return { vary: "Origin", ...(origin !== undefined && { "access-control-allow-origin": origin }) };
}

/** Headers of a preflight answer, in addition to `crossOriginHeaders`. */
export const PREFLIGHT_HEADERS: Readonly<Record<string, string>> = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": "content-type",
  "access-control-max-age": "600",
};

const FORBIDDEN: Refusal = {
  status: 403,
  code: "origin_not_allowed",
  message: "This origin is not allowed",
  headers: { vary: "Origin" },
};
const WRONG_METHOD: Refusal = {
  status: 405,
  code: "method_not_allowed",
  message: "Method not allowed",
  headers: { allow: "GET, POST, OPTIONS" },
};
const UNSOUND: Refusal = { status: 400, code: "invalid_request", message: "The query does not fit the transport" };
const TOO_LARGE: Refusal = { status: 413, code: "body_too_large", message: "Request body too large" };

/**
 * Requests that Engine.IO handles badly: a plain GET with the transport `websocket` and the session of a WebSocket, and an older
 * protocol over a WebSocket. Engine.IO uses the last of several parameters with one name, so this function must, too.
 */
function isQuerySound(url: string, kind: "request" | "upgrade"): boolean {
  const query = new URLSearchParams(url.slice(url.indexOf("?") + 1));
  if (["EIO", "transport", "sid"].some((name) => query.getAll(name).length > 1)) return false;
  if (query.get("EIO") !== "4") return false;
  return (query.get("transport") === "websocket") === (kind === "upgrade");
}
