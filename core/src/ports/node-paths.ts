import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { definePort, type Port } from "../port.ts";

/**
 * Paths of the app's surfaces that are answered on Node's own requests and upgraded connections, beside the declared routes: for adapters
 * whose technology speaks a protocol of its own there, as realtime transports do. The app itself fills this port.
 */
export interface NodePaths {
  /**
   * Answer one path of one surface until the returned function is called. The path is matched as it is spelled, and goes before a route of
   * the same path. Throws a sentence when it is already served. `surface.fetch` has no Node request and serves none of it; `attach` does.
   */
  serve(path: NodePath): () => void;
}

export interface NodePath {
  readonly surface: string;
  /** As a client spells it, without a query: `/socket.io/`. */
  readonly path: string;
  /** A request for the path. It may be held open for as long as the client stays, and must be answered in the end. */
  request(request: IncomingMessage, response: ServerResponse): void;
  /** A connection that asks for a WebSocket. From now on it is the adapter's to answer, to listen to, and to end. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
}

export const nodePaths: Port<NodePaths> = definePort<NodePaths>("node-paths");
