import type { ServerResponse } from "node:http";
import { type H3, H3Event } from "h3";
import type { ServerRequest } from "srvx";
import type { SurfaceServices } from "./pipeline.ts";
import { CALLER_LEFT, type RequestIds } from "./answer-headers.ts";

/** A request on its way through the h3 app of a surface. */
export class SurfaceEvent extends H3Event {
  /** The response of Node, on a Node host. */
  readonly response: ServerResponse | undefined;
  /** Middleware has accessed `res`, on which it sets headers of the answer. */
  isStaged = false;
  /** `answer` has taken it, or a WebSocket: telemetry is told of it there. */
  isTaken = false;
  /** Of the same clock as `performance.now()`. */
  readonly arrivedAt: number = performance.now();

  constructor(request: Request, app: H3, response?: ServerResponse) {
    super(request as never, ownContext(request as ServerRequest), app);
    this.response = response;
  }

  override get res(): H3Event["res"] {
    this.isStaged = true;
    return super.res;
  }

  /** The requested address, unchanged: h3 decodes escapes in its own `url`. */
  get target(): URL {
    return this.req._url ?? new URL(this.req.url);
  }

  /** Adds names to the `vary` that middleware has set, which would replace that of the answer. */
  joinVary(names: string | readonly string[] | undefined): void {
    if (!this.isStaged || typeof names !== "string") return;
    for (const headers of [this.res.headers, this.res.errHeaders]) {
      const staged = headers.get("vary");
      if (staged !== null && !staged.includes(names)) headers.set("vary", `${staged}, ${names}`);
    }
  }

  /** The headers that middleware has set for an answer of this status. As in h3, errors get only the error headers. */
  staged(status: number): Record<string, string | string[]> {
    const headers = status >= 400 ? this.res.errHeaders : this.res.headers;
    const cookies = headers.getSetCookie();
    return { ...Object.fromEntries(headers), ...(cookies.length > 0 && { "set-cookie": cookies }) };
  }
}

/**
 * The query with its leading `?`, or `""`. srvx parses an address only as far as needed, and then keeps the `?` of an empty
 * query.
 */
export function searchOf({ search }: URL): string {
  return search === "?" ? "" : search;
}

/** The context that a host (itself an h3 app) has put on the request, without the route and parameters of its own table. */
function ownContext({ context }: ServerRequest): H3Event["context"] | undefined {
  if (!context) return undefined;
  const { matchedRoute: _route, params: _params, middlewareParams: _middlewareParams, ...others } = context;
  return others;
}

export type RawParams = Readonly<Record<string, string>> | undefined;

export interface PathParams {
  readonly params: Readonly<Record<string, string>>;
  /** An escape cannot be decoded. All parameters are then left undecoded. */
  readonly isMalformed: boolean;
}

/**
 * The parameters of a path, decoded once. Parameters that cannot be decoded stay unchanged, so that the credential is checked and
 * refused first.
 */
export function decodeParams(raw: RawParams): PathParams {
  if (raw === undefined) return NONE;
  const entries = Object.entries(raw);
  if (entries.length === 0) return NONE;
  try {
    return {
      params: Object.fromEntries(entries.map(([name, value]) => [name, decodeURIComponent(value)])),
      isMalformed: false,
    };
  } catch {
    return { params: { ...raw }, isMalformed: true };
  }
}

const NONE: PathParams = { params: Object.freeze({}), isMalformed: false };

/**
 * Tell of a request that middleware or a route of the host has answered. `answer` tells of all others. Only now is it known which of them
 * has answered, so that the beginning is told late.
 */
export function tellHostAnswer(
  surface: string,
  event: SurfaceEvent,
  status: number,
  ids: RequestIds,
  { telemetry }: Pick<SurfaceServices, "telemetry">,
): void {
  const { req, context, arrivedAt, target } = event;
  const trace = telemetry.begin({
    id: ids.own,
    callerRequestId: ids.ofCaller,
    area: surface,
    route: "host",
    method: req.method,
    path: context.matchedRoute?.route ?? "",
    scheme: target.protocol === "https:" ? "https" : "http",
    header: (name) => req.headers.get(name) ?? undefined,
    beganMsAgo: performance.now() - arrivedAt,
  });
  trace.end({ status });
}

/** Calls `over` with the sent status when Node has sent an answer, or has lost its reader. */
export function onResponseOver(response: ServerResponse, over: (status: number) => void): void {
  const end = () => over(response.headersSent ? response.statusCode : CALLER_LEFT);
  if (response.closed) end();
  else response.once("close", end);
}
