import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { H3, H3Event } from "h3";
import { toNodeHandler } from "srvx/node";
import { answerFetch } from "./http/answer-fetch.ts";
import { answerNode } from "./http/answer-node.ts";
import { DirectRoutes } from "./http/direct-routes.ts";
import { EventStreams } from "./http/event-streams.ts";
import type { InstalledRoute, PathRoutes, SurfaceServices } from "./http/pipeline.ts";
import { withOrigins } from "./http/origins.ts";
import { refuseUpgrade } from "./http/refuse-upgrade.ts";
import type { NodePath } from "./ports/node-paths.ts";

export type Fetch = (request: Request) => Response | Promise<Response>;
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** One address with its own credential: the routes of every plugin that stands on it. */
export interface Surface {
  readonly name: string;
  /** For any fetch host. One parameter on purpose: hosts pass `env` and friends as the second. */
  readonly fetch: Fetch;
  /** For Node hosts: a classic `(request, response)` listener. Exchange routes run on the Node streams themselves. */
  readonly node: NodeListener;
  /**
   * Answer a connection that asks for another protocol, with the surface's own path in `url`. False, and untouched, where nothing of this
   * surface takes one; `attach` of `@portico/core/node` is the usual caller.
   */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): boolean;
  /** Whether the answer may take as long as the client stays, which whoever drains a server needs to know. */
  isHeldOpen(request: Pick<IncomingMessage, "url">): boolean;
  /**
   * End the event streams that are open, as if their sources had ended, and from now on each that opens: whoever drains a server would wait
   * for them. Their readers ask again, and find another process or the next one. The app does it first when it closes.
   */
  endEventStreams(): void;
}

/** What a preset says of a whole surface. */
export interface SurfaceOptions {
  /**
   * Origins of web pages that may call this surface beside its own, such as `https://desk.example`. Pages of any other origin are refused
   * with 403 `origin_not_allowed`. A surface of which no preset says anything does not look at origins. A function is asked at every
   * request that names an origin, for those that are known only when something listens.
   */
  readonly allowedOrigins: readonly string[] | (() => readonly string[]);
  /**
   * What becomes of pages of other origins; default: `refused`. `as ever` answers them as if they had named no origin, so that a browser lets
   * them read nothing: for surfaces whose callers are programs, some of which (extensions of browsers, for one) send an `Origin` all the same.
   */
  readonly otherOrigins?: "refused" | "as ever";
}

/** A surface that can still take routes; the app fills it while it starts. */
export interface SurfaceBuilder extends Surface {
  add(route: InstalledRoute): void;
}

/** `nodePaths` is looked into at every Node request: what is served there goes before the routes. */
export function createSurface(
  name: string,
  given: Omit<SurfaceServices, "streams">,
  nodePaths: ReadonlyMap<string, NodePath>,
  options?: SurfaceOptions,
): SurfaceBuilder {
  const services: SurfaceServices = { ...given, streams: new EventStreams() };
  const paths = new Map<string, PathRoutes>();
  const direct = new DirectRoutes();
  const unmatched: PathRoutes = { path: "", surface: name, methods: new Map() };
  // A malformed path is for the area to refuse, after the credential and in its own envelope.
  const h3 = new H3({ silent: true, allowMalformedURL: true });
  h3.all("/**", (event: H3Event) => answerFetch(unmatched, event.req, {}, services));

  // Not by h3's own fetch: that takes only instances of the global Response of this moment for answers, and hosts replace it, as Hono's on Node does.
  const routed: Fetch = async (request) => (await h3.handler(new H3Event(request as never, undefined, h3))) as Response;
  const refused: Fetch = (request) => answerFetch(unmatched, request, {}, services, "origin_not_allowed");
  const fetch = options ? withOrigins(routed, options, refused) : routed;
  const overFetch = toNodeHandler((request) => fetch(request)) as NodeListener;
  const answerServed = (served: NodePath, request: IncomingMessage, response: ServerResponse) => {
    try {
      served.request(request, response);
    } catch (error) {
      services.telemetry.log.error(`A request on surface "${name}" failed`, { path: served.path }, error);
      response.destroy();
    }
  };
  return {
    name,
    fetch,
    endEventStreams: () => services.streams.end(),
    isHeldOpen: (request) => nodePaths.has(pathOf(request.url)),
    upgrade(request, socket, head) {
      const served = nodePaths.get(pathOf(request.url));
      if (!served) return false;
      try {
        served.upgrade(request, socket, head);
      } catch (error) {
        services.telemetry.log.error(`An upgrade on surface "${name}" failed`, { path: served.path }, error);
        refuseUpgrade(socket, 500, { error: "internal_error", message: "Internal error" });
      }
      return true;
    },
    node(request, response) {
      const path = pathOf(request.url);
      const served = nodePaths.get(path);
      if (served) return answerServed(served, request, response);
      // Origins are looked at in one place; only browsers take the detour.
      const isFromPage = options !== undefined && request.headers.origin !== undefined;
      const matched = isFromPage ? undefined : direct.find(path, request.url?.slice(path.length) ?? "");
      if (!matched) return overFetch(request, response);
      return answerNode(matched, request, response, services).catch((error: unknown) => {
        // An answer that cannot even be refused, for example with a header that is none: only this connection may suffer.
        services.telemetry.log.error(`An answer of surface "${name}" could not be sent`, {}, error);
        response.destroy();
      });
    },
    add(route) {
      const { path, method } = route.contract;
      const known = paths.get(path);
      const routes = known ?? { path, surface: name, methods: new Map() };
      if (routes.methods.has(method)) {
        throw new Error(
          `${method} ${path} on surface "${name}" is declared twice: by "${routes.methods.get(method)!.key}" and "${route.key}"`,
        );
      }
      routes.methods.set(method, route);
      unmatched.envelope ??= route.contract.envelope;
      unmatched.faults ??= route.contract.faults;
      if (!known) {
        paths.set(path, routes);
        h3.all(path, (event: H3Event) => {
          // h3 takes `/path/` for `/path`; a path that no contract declares is unregistered (specification 4.1).
          const isDeclared = event.url.pathname.endsWith("/") === path.endsWith("/");
          return answerFetch(isDeclared ? routes : unmatched, event.req, event.context.params ?? {}, services);
        });
      }
      direct.add(routes);
    },
  };
}

function pathOf(url: string | undefined): string {
  if (url === undefined) return "/";
  const end = url.indexOf("?");
  return end < 0 ? url : url.slice(0, end);
}
