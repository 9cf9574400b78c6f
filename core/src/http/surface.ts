import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { H3 } from "h3";

/** Answers a fetch request. */
export type Fetch = (request: Request) => Response | Promise<Response>;
/** Answers a request of a Node server. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** One address with its own credential: the routes of all plugins on it. */
export interface Surface {
  readonly name: string;
  /**
   * The h3 app that routes the surface's requests, from both entry points. A host may add middleware (`h3.use`) and its own routes at
   * any time. Middleware runs before every route and every refusal, except the refusals of the origin rule and of `forHosts`.
   * Before it calls `next`, it can set headers of an answer with `event.res.headers`, and of an error answer with
   * `event.res.errHeaders`. Its errors are answered like errors of a handler; h3 itself answers an `HTTPError`. Realtime channels
   * and other long-held paths bypass this app.
   */
  readonly h3: H3;
  /** For any fetch host. It has only one parameter on purpose: hosts pass `env` and other values as the second. */
  readonly fetch: Fetch;
  /** For Node hosts: a classic `(request, response)` listener. Exchange routes run on the Node streams themselves. */
  readonly node: NodeListener;
  /**
   * Answer a connection that requests another protocol, with the surface's own path in `url`. False, with the connection
   * untouched, if no part of this surface accepts it. The usual caller is `attach` of `@portico/core/node`.
   */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean;
  /** Whether the answer may last as long as the client stays connected. A server that drains its requests needs to know this. */
  isHeldOpen(request: Pick<IncomingMessage, "url">): boolean;
  /**
   * End all open event streams, as if their sources had ended, and from now on every new one. A server that drains its requests
   * would otherwise wait for them. Their readers reconnect, to another process or to the next one. The app calls it first when it
   * closes.
   */
  endEventStreams(): void;
  /**
   * The same surface, restricted to requests that name one of `hosts` (names or addresses without a port), or this machine by a
   * loopback name. Before any other check, a request for another host is refused with 421 `host_not_allowed`, and a request with
   * several `Host` headers with 400. Otherwise a web page whose name was pointed at this machine (DNS rebinding) would count as
   * the service's own page. `0.0.0.0` and `::` accept every IP address. The program that listens calls it, because it knows the
   * names of the surface; open points 11.
   */
  forHosts(hosts: readonly string[]): Surface;
}

/** Options of a whole surface in a preset. */
export interface SurfaceOptions {
  /**
   * Origins of web pages that may call this surface in addition to its own origin, such as `https://desk.example`. Pages of any
   * other origin are refused with 403 `origin_not_allowed`. A surface without options in the preset does not check origins. A
   * function is called at every request with an origin, for origins that are known only after listening has begun.
   */
  readonly allowedOrigins: readonly string[] | (() => readonly string[]);
  /**
   * How requests of pages of other origins are handled; default: `refused`. `answered` answers them without CORS headers, so that
   * a browser hides the answer from the page. It is for surfaces whose callers are programs: some programs, such as browser
   * extensions, send an `Origin`.
   */
  readonly otherOrigins?: "refused" | "answered";
}
