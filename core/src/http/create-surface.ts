import type { IncomingMessage, ServerResponse } from "node:http";
import { defineWebSocketHandler, H3, H3Event, type HTTPError, toResponse } from "h3";
import { addRoute, createRouter, findAllRoutes } from "rou3";
import { NodeRequest, sendNodeResponse } from "srvx/node";
import { guardCall } from "../grammar/guard-call.ts";
import { answer, type Refusal } from "./answer.ts";
import { EventStreams } from "./event-pieces.ts";
import { FetchHost } from "./fetch-host.ts";
import { hasLeft, NodeHost } from "./node-host.ts";
import { type EntryPoints, hostBound } from "./host-rule.ts";
import { originRule } from "./origin-rule.ts";
import { type InstalledRoute, type PathRoutes, routeFor, type SurfaceServices } from "./pipeline.ts";
import { refuseUpgrade } from "./refuse-upgrade.ts";
import { callerIdHeader, idHeaders, NO_SNIFFING, requestIds, withHeaders } from "./answer-headers.ts";
import { onResponseOver, SurfaceEvent, tellHostAnswer } from "./surface-event.ts";
import type { NodePath } from "../ports/node-paths.ts";
import type { WebSocketPath } from "../ports/websocket-paths.ts";
import type { Surface, SurfaceOptions } from "./surface.ts";

const ATTACH = "call attach(server, surface) of @portico/core/node";

/** A surface that still accepts routes. The app adds them while it starts. */
export interface SurfaceBuilder extends Surface {
  add(route: InstalledRoute): void;
}

/** Paths that are served besides the routes, and take precedence over them. Looked up at every request. */
export interface ServedPaths {
  readonly node: ReadonlyMap<string, NodePath>;
  readonly webSocket: ReadonlyMap<string, WebSocketPath>;
}

export function createSurface(
  name: string,
  given: Omit<SurfaceServices, "streams">,
  { node: nodePaths, webSocket: webSocketPaths }: ServedPaths,
  options?: SurfaceOptions,
): SurfaceBuilder {
  const services: SurfaceServices = { ...given, streams: new EventStreams() };
  const { log } = services.telemetry;
  const idsOf = (header: string | string[] | null | undefined) =>
    requestIds(typeof header === "string" ? header : undefined, services.ids);
  const paths = new Map<string, PathRoutes>();
  /** The same by pattern, to find every declared path that matches a requested one. */
  const table = createRouter<PathRoutes>();
  /** The most exact path first. A path with a trailing slash is another path (specification 4.1), although the table ignores it. */
  const matchesOf = (pathname: string) =>
    findAllRoutes(table, "", pathname)
      .filter(({ data }) => data.path.endsWith("/") === pathname.endsWith("/"))
      .reverse();
  const unmatched: PathRoutes = { path: "", surface: name, methods: new Map() };
  /** The answer of a surface's own route or refusal, for h3. */
  const respond = (routes: PathRoutes, event: SurfaceEvent, refusal?: Refusal): Promise<Response> => {
    const { response, context } = event;
    event.isTaken = true;
    const host = response ? new NodeHost(event, response, context.params) : new FetchHost(event, context.params);
    answer(routes, host, services, refusal).catch((error: unknown) => host.cut(error));
    return host.answered;
  };
  /**
   * The routes of the most exact path that has the method. `PUT /api/workflow/events` is the retired `PUT /api/workflow/:id`, although the path
   * `/api/workflow/events` exists. Without such a path, all methods of all matching paths are allowed.
   */
  const routesOf = (routes: PathRoutes, { req, url, context }: SurfaceEvent): PathRoutes => {
    if (routeFor(routes, req.method)) return routes;
    const matches = matchesOf(url.pathname);
    const having = matches.find(({ data }) => routeFor(data, req.method));
    if (!having) {
      const others = matches.flatMap(({ data }) => [...data.methods]);
      return { ...routes, methods: new Map([...routes.methods, ...others.filter(([method]) => !routes.methods.has(method))]) };
    }
    context.params = having.params ?? {};
    return having.data;
  };
  const h3: H3 = new H3({
    silent: true,
    async onError(error: HTTPError, event) {
      const asked = event as SurfaceEvent;
      const isUnrouted = error.status === 404 && !event.context.matchedRoute;
      if (!isUnrouted && !error.unhandled) return undefined;
      const response = await respond(unmatched, asked, isUnrouted ? undefined : { thrown: error.cause });
      return asked.isStaged ? withHeaders(response, asked.staged(response.status)) : response;
    },
  });
  if (options) {
    const refuse = (event: SurfaceEvent) => respond(unmatched, event, { code: "origin_not_allowed" });
    h3.use(originRule(options, refuse, (path) => matchesOf(path).some(({ data }) => isOpenToPages(data))));
  }
  const run = (event: SurfaceEvent, refusal?: Refusal): unknown => {
    const webSocket = webSocketPaths.size > 0 && !refusal ? webSocketPaths.get(event.target.pathname) : undefined;
    if (webSocket) {
      event.isTaken = true;
      return answerWebSocket(webSocket, event.req);
    }
    try {
      return refusal ? respond(unmatched, event, refusal) : h3.handler(event);
    } catch (error) {
      // For middleware that throws synchronously.
      return Promise.reject(error as Error);
    }
  };
  const answerServed = (served: NodePath, request: IncomingMessage, response: ServerResponse) => {
    guardCall(
      () => {
        response.setHeader("x-request-id", idHeaders(idsOf(request.headers["x-request-id"]))["x-request-id"]);
        return served.request(request, response);
      },
      (error) => {
        log.error(`A request on surface "${name}" failed`, { path: served.path }, error);
        response.destroy();
      },
    );
  };
  const sendOnNode = async (event: SurfaceEvent, response: ServerResponse, handled: unknown): Promise<void> => {
    try {
      const made = await toResponse(handled, event, h3.config);
      if (!event.isTaken) {
        const ids = idsOf(response.req.headers["x-request-id"]);
        onResponseOver(response, (status) => tellHostAnswer(name, event, status, ids, services));
        if (!response.headersSent && !made.headers.has("x-request-id"))
          response.setHeader("x-request-id", idHeaders(ids)["x-request-id"]);
      }
      // An exchange has sent its answer already.
      if (response.headersSent) return;
      if (hasLeft(response)) await made.body?.cancel();
      else await sendNodeResponse(response, made);
    } catch (error) {
      log.error(`An answer of surface "${name}" could not be sent`, {}, error);
      response.destroy();
    }
  };
  let isAttached = true;
  /** A host that does not attach the surface serves no realtime channel, and would not notice. */
  const warnOfUnattached = (path: string) => {
    if (isAttached) log.warn(`Surface "${name}" is not attached: realtime connections cannot be made`, { path, fix: ATTACH });
    isAttached = false;
  };
  const entries: EntryPoints = {
    async fetch(request, refusal) {
      const event = new SurfaceEvent(request, h3);
      // A path of plain WebSockets is opened by the host, from the hooks on the answer.
      const { pathname } = event.target;
      if (nodePaths.has(pathname) && !webSocketPaths.has(pathname)) warnOfUnattached(pathname);
      const response = await toResponse(run(event, refusal), event, h3.config);
      if (event.isTaken) return response;
      const ids = idsOf(request.headers.get("x-request-id"));
      tellHostAnswer(name, event, response.status, ids, services);
      // The answer that opens a WebSocket is made by the host.
      if (response.status === 101 || response.headers.has("x-request-id")) return response;
      return withHeaders(response, { "x-request-id": idHeaders(ids)["x-request-id"] });
    },
    node(request, response, refusal) {
      const served = nodePaths.get(pathOf(request.url));
      if (served && !refusal) {
        if (request.headers.upgrade?.toLowerCase() === "websocket") warnOfUnattached(served.path);
        return answerServed(served, request, response);
      }
      const event = new SurfaceEvent(new NodeRequest({ req: request, res: response }), h3, response);
      return sendOnNode(event, response, run(event, refusal));
    },
  };
  const surface: SurfaceBuilder = {
    name,
    h3,
    fetch: (request) => entries.fetch(request),
    forHosts: (hosts) => hostBound(surface, hosts, entries),
    endEventStreams: () => services.streams.end(),
    isHeldOpen: (request) => nodePaths.has(pathOf(request.url)),
    upgrade(request, socket, head) {
      const served = nodePaths.get(pathOf(request.url));
      if (!served) return false;
      guardCall(
        () => served.upgrade(request, socket, head),
        (error) => {
          log.error(`An upgrade on surface "${name}" failed`, { path: served.path }, error);
          refuseUpgrade(socket, 500, { error: "internal_error", message: "Internal error" }, callerIdHeader(request));
        },
      );
      return true;
    },
    node: (request, response) => entries.node(request, response),
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
      if (known) return;
      paths.set(path, routes);
      addRoute(table, "", path, routes);
      h3.all(path, (event) => {
        // h3 matches `/path/` as `/path`. A path that no contract declares is unregistered (specification 4.1).
        const isDeclared = event.url.pathname.endsWith("/") === path.endsWith("/");
        const asked = event as SurfaceEvent;
        return respond(isDeclared ? routesOf(routes, asked) : unmatched, asked);
      });
    },
  };
  return surface;
}

function isOpenToPages({ methods }: PathRoutes): boolean {
  return [...methods.values()].some(({ contract }) => contract.otherOrigins === "answered");
}

function pathOf(url: string | undefined): string {
  if (url === undefined) return "/";
  const end = url.indexOf("?");
  return end < 0 ? url : url.slice(0, end);
}

/**
 * Answers a request for a WebSocket path. The host finds the hooks on the answer and opens the WebSocket. Any other request
 * gets 426.
 */
export async function answerWebSocket({ hooks }: WebSocketPath, request: Request): Promise<Response> {
  const answer = await defineWebSocketHandler(hooks, upgradeRequired)(new H3Event(request as never));
  return answer as Response;
}

function upgradeRequired(): Response {
  const headers = { ...NO_SNIFFING, "content-type": "application/json; charset=utf-8", upgrade: "websocket" };
  return new Response(JSON.stringify({ error: "upgrade_required", message: "This path is for WebSockets" }), {
    status: 426,
    headers,
  });
}
