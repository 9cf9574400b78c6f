import { definePort, type Port } from "../grammar/port.ts";

/**
 * Paths of the app's surfaces on which hosts with fetch functions open WebSockets: Deno, Bun, and every server of
 * `crossws/server`. For adapters that use WebSocket without a Node server; `node-paths` is the same for Node's own server. The
 * app itself fills this port.
 */
export interface WebSocketPaths {
  /**
   * Open WebSockets on one path of one surface until the returned function is called. The path must match exactly, and takes
   * precedence over a route with the same path. Throws a sentence when it is already served.
   */
  serve(path: WebSocketPath): () => void;
}

/** One path of one surface, with the handlers of its WebSockets. */
export interface WebSocketPath {
  readonly surface: string;
  /** As clients write it, without a query: `/live/`. */
  readonly path: string;
  /**
   * Hooks of crossws 0.4: `upgrade`, `open`, `message`, `close`, `error`. `surface.fetch` hands them to the host as h3's
   * `defineWebSocketHandler` does. An error of a hook other than `upgrade` is logged, and not passed on.
   */
  readonly hooks: object;
}

/** The port of paths that answer WebSockets on hosts of fetch functions. */
export const webSocketPaths: Port<WebSocketPaths> = definePort<WebSocketPaths>("websocket-paths");
