import type { ServerResponse } from "node:http";
import { type H3, H3Event } from "h3";
import type { ServerRequest } from "srvx";

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
