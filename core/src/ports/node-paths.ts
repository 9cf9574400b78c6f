import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { definePort, type Port } from "../grammar/port.ts";

/**
 * Paths of the app's surfaces that are answered on Node's own requests and upgraded connections, in addition to the declared
 * routes. For adapters with their own protocol, such as realtime transports. The app itself fills this port.
 */
export interface NodePaths {
  /**
   * Answer one path of one surface until the returned function is called. The path must match exactly, and takes precedence over
   * a route with the same path. Throws a sentence when it is already served. `surface.fetch` has no Node request and does not
   * serve these paths; `attach` does.
   */
  serve(path: NodePath): () => void;
}

/** One path of one surface, with its handlers on Node. */
export interface NodePath {
  readonly surface: string;
  /** As clients write it, without a query: `/socket.io/`. */
  readonly path: string;
  /** A request for the path. It may stay open as long as the client is connected, and must be answered eventually. */
  request(request: IncomingMessage, response: ServerResponse): void;
  /** A connection that requests a WebSocket. From now on the adapter must answer it, listen to it, and end it. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

/** The port of paths that only a Node server can answer. */
export const nodePaths: Port<NodePaths> = definePort<NodePaths>("node-paths");
