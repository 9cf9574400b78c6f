import { Buffer } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { OriginFacts, ports } from "@portico/core";
import { callerIdHeader, refuseUpgrade } from "@portico/core/node";
import { defineHooks, type Peer } from "crossws";
import crossws, { type NodeAdapter } from "crossws/adapters/node";
import type { SocketLimits } from "../socket-limits.ts";
import { Connection, terminate } from "./connection.ts";
import { CLOSING } from "./frames.ts";

export interface WebSocketServiceGiven {
  readonly limits: SocketLimits;
  readonly allowOrigin: (facts: OriginFacts) => boolean;
  readonly nodePaths: ports.NodePaths;
  readonly webSocketPaths: ports.WebSocketPaths;
  readonly log: ports.Log;
  /** The path can be served again. */
  freed(): void;
}

/** One served path: the same crossws hooks for Node's own upgrades and for hosts with fetch functions. */
export class WebSocketService<W> implements ports.RealtimeConnections {
  readonly #given: WebSocketServiceGiven;
  /** Every open WebSocket, by the ID of its peer. */
  readonly #open = new Map<string, { readonly peer: Peer; readonly connection: Connection<W> }>();
  readonly #release: () => void;
  #closing: Promise<void> | undefined;

  constructor(service: ports.RealtimeService<W>, given: WebSocketServiceGiven) {
    this.#given = given;
    const { limits, allowOrigin, log, nodePaths, webSocketPaths } = given;
    const over = (peer: Peer) => {
      this.#open.get(peer.id)?.connection.end();
      this.#open.delete(peer.id);
    };
    const hooks = defineHooks({
      upgrade: ({ headers }) => {
        const named = callerIdHeader({ headers: Object.fromEntries(headers) });
        if (this.#closing) return refusal(404, "not_found", "Not found", named);
        const facts = { origin: headers.get("origin") ?? undefined, host: headers.get("host") ?? undefined };
        return allowOrigin(facts) ? { headers: named } : refusal(403, "origin_not_allowed", "This origin is not allowed", named);
      },
      open: (peer) => {
        const connection = new Connection<W>(peer, { service, limits, log });
        this.#open.set(peer.id, { peer, connection });
        if (this.#closing) connection.close(CLOSING.stopped);
      },
      ping: (peer) => this.#open.get(peer.id)?.connection.pinged(),
      message: (peer, message) => this.#open.get(peer.id)?.connection.receive(message),
      close: over,
      error: over,
    });
    const { surface, path } = service;
    // Created at the first upgrade, because other runtimes refuse it. Pings are frames of the protocol, so crossws sends none.
    let sockets: NodeAdapter | undefined;
    const onNode = () => (sockets ??= crossws({ hooks, idleTimeout: 0, serverOptions: { maxPayload: limits.maxMessageBytes } }));
    const releases = [
      nodePaths.serve({
        surface,
        path,
        request: answerRequest,
        upgrade: (request, socket, head) => void upgrade(onNode, log, request, socket, head),
      }),
      webSocketPaths.serve({ surface, path, hooks }),
    ];
    this.#release = () => releases.forEach((release) => release());
  }

  send(socketId: string, event: string, payload: unknown, place?: string): boolean {
    return this.#open.get(socketId)?.connection.send(event, payload, place) ?? false;
  }

  has(socketId: string): boolean {
    return this.#open.get(socketId)?.connection.isConnected ?? false;
  }

  async drained(socketId: string): Promise<boolean> {
    return (await this.#open.get(socketId)?.connection.drained()) ?? false;
  }

  drop(socketId: string): boolean {
    if (!this.has(socketId)) return false;
    this.#open.get(socketId)?.connection.close(CLOSING.dropped);
    return true;
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#release();
    const open = [...this.#open.values()];
    for (const { connection } of open) connection.close(CLOSING.stopped);
    // The close frames leave first. A closing handshake would wait for the clients, which may never answer.
    await new Promise((resolve) => setTimeout(resolve, 0));
    for (const { peer } of open) terminate(peer);
    this.#given.freed();
  }
}

async function upgrade(
  sockets: () => NodeAdapter,
  log: ports.Log,
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
  try {
    await sockets().handleUpgrade(request, socket, head);
  } catch (error) {
    const isElsewhere = "Deno" in globalThis || "Bun" in globalThis;
    const hint = isElsewhere ? ": on Deno and Bun, only servers of crossws/server open plain WebSockets" : "";
    log.error(`A WebSocket could not be opened${hint}`, {}, error);
    refuseUpgrade(socket, 500, { error: "internal_error", message: "Internal error" }, callerIdHeader(request));
  }
}

/** A request without an upgrade to WebSocket. */
function answerRequest(_request: IncomingMessage, response: ServerResponse): void {
  const body = JSON.stringify({ error: "upgrade_required", message: "This path is for WebSockets" });
  const length = Buffer.byteLength(body);
  response.writeHead(426, { ...JSON_BODY, "content-length": length, upgrade: "websocket", connection: "close" }).end(body);
}

function refusal(status: number, error: string, message: string, named: Readonly<Record<string, string>>): Response {
  return new Response(JSON.stringify({ error, message }), {
    status,
    headers: { ...JSON_BODY, ...named, vary: "Origin", connection: "close" },
  });
}

const JSON_BODY = { "content-type": "application/json; charset=utf-8", "x-content-type-options": "nosniff" };
