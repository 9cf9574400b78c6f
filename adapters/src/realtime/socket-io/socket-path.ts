import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { ports } from "@portico/core";
import { callerIdHeader, refuseUpgrade } from "@portico/core/node";
import { Server as Engine, type Socket as EngineConnection } from "engine.io";
import { type DefaultEventsMap, Server, type Socket } from "socket.io";
import { crossOriginHeaders, type DoorRules, PREFLIGHT_HEADERS, type Refusal, refusalOf } from "./door.ts";
import type { SocketLimits } from "../socket-limits.ts";
import { Outbox } from "./outbox.ts";
import { terminate, watchPongs } from "./watch-pongs.ts";
import { givePid, takeReturn, toPid } from "./return.ts";

export interface SocketPathGiven {
  readonly limits: SocketLimits;
  readonly allowOrigin: DoorRules["allowOrigin"];
  readonly nodePaths: ports.NodePaths;
  readonly log: ports.Log;
  /** The path can be served again. */
  freed(): void;
}

interface Connection<W> {
  readonly socket: ports.RealtimeSocket<W>;
  readonly wire: IoSocket<W>;
}

type Events = DefaultEventsMap;
/** `data` is the answer of `admit`. */
type IoSocket<W> = Socket<Events, Events, Events, W>;

/** One served path: a Socket.IO server that handles Node's own requests and upgrades. */
export class SocketPath<W> implements ports.RealtimeConnections {
  readonly #service: ports.RealtimeService<W>;
  readonly #given: SocketPathGiven;
  readonly #rules: DoorRules;
  readonly #engine: Engine;
  readonly #server: Server<Events, Events, Events, W>;
  readonly #connections = new Map<string, Connection<W>>();
  /** Upgraded connections. They are ended when the path closes, even if their clients do not cooperate. */
  readonly #wires = new Set<Duplex>();
  /** Resume points of admitted clients, until they have joined. */
  readonly #resumePoints = new WeakMap<IoSocket<W>, string>();
  /** What waits for each client, also before it is admitted. */
  readonly #outboxes = new WeakMap<EngineConnection, Outbox>();
  /** Connections whose client has sent its hello. */
  readonly #greeted = new WeakSet<EngineConnection>();
  readonly #release: () => void;
  #closing: Promise<void> | undefined;

  constructor(service: ports.RealtimeService<W>, given: SocketPathGiven) {
    const { limits } = given;
    this.#service = service;
    this.#given = given;
    this.#rules = { allowOrigin: given.allowOrigin, maxMessageBytes: limits.maxMessageBytes };
    this.#engine = new Engine({
      transports: ["polling", "websocket"],
      maxHttpBufferSize: limits.maxMessageBytes,
      pingInterval: limits.pingIntervalMs,
      pingTimeout: limits.pingTimeoutMs,
      // Events are small, but a compressor per answer is not.
      httpCompression: false,
    });
    this.#server = new Server({ serveClient: false, connectTimeout: limits.helloTimeoutMs });
    this.#server.bind(this.#engine);
    this.#engine.on("headers", (headers: Record<string, string>, request: IncomingMessage) =>
      Object.assign(headers, callerIdHeader(request)),
    );
    this.#engine.on("connection", (conn: EngineConnection) => this.#bound(conn));
    this.#server.use((wire, next) => void this.#admit(wire, next));
    this.#server.on("connection", (wire) => this.#join(wire));
    this.#release = given.nodePaths.serve({
      surface: service.surface,
      path: service.path,
      request: (request, response) => this.#answer(request, response),
      upgrade: (request, socket, head) => this.#upgrade(request, socket, head),
    });
  }

  send(socketId: string, event: string, payload: unknown, resumePoint?: string): boolean {
    const connection = this.#connections.get(socketId);
    if (!connection) return false;
    if (resumePoint !== undefined) connection.wire.emit(event, payload, resumePoint);
    else if (payload === undefined) connection.wire.emit(event);
    else connection.wire.emit(event, payload);
    if (this.#outboxOf(connection).exceeds(this.#given.limits.backlog)) this.#cut(connection.wire.conn);
    return this.has(socketId);
  }

  has(socketId: string): boolean {
    return this.#connections.has(socketId);
  }

  drained(socketId: string): Promise<boolean> {
    const connection = this.#connections.get(socketId);
    return connection ? this.#outboxOf(connection).drained() : Promise.resolve(false);
  }

  drop(socketId: string): boolean {
    const connection = this.#connections.get(socketId);
    connection?.wire.disconnect(true);
    return connection !== undefined;
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#release();
    await this.#server.close();
    // The closing handshake of a WebSocket waits for the client, which may never answer.
    for (const wire of this.#wires) wire.destroy();
    this.#given.freed();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const refusal = refusalOf(request, "request", this.#rules);
    if (refusal) return refuse(response, refusal);
    response.setHeader("x-content-type-options", "nosniff");
    // A body that is too long is answered before it is read. The rest is not read.
    response.once("finish", () => request.complete || request.socket.destroySoon());
    for (const [name, value] of Object.entries(crossOriginHeaders(request))) response.setHeader(name, value);
    if (request.method === "OPTIONS") return void response.writeHead(204, PREFLIGHT_HEADERS).end();
    this.#engine.handleRequest(request as never, response);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const refusal = refusalOf(request, "upgrade", this.#rules);
    if (refusal) {
      const { status, code, message, headers } = refusal;
      return refuseUpgrade(socket, status, { error: code, message }, { ...headers, ...callerIdHeader(request) });
    }
    this.#wires.add(socket);
    socket.once("close", () => this.#wires.delete(socket));
    this.#engine.handleUpgrade(request as never, socket, head);
  }

  async #admit(wire: IoSocket<W>, next: (error?: Error) => void): Promise<void> {
    const { conn } = wire;
    // One decision per connection. Otherwise a flood of hellos would be a flood of decisions.
    if (this.#greeted.has(conn)) conn.close(true);
    this.#greeted.add(conn);
    // Socket.IO drops the attempt when it finds the connection closed.
    if (conn.readyState !== "open") return next();
    const left = new AbortController();
    conn.once("close", () => left.abort(new DOMException("The client went away", "AbortError")));
    try {
      const { hello, pid, last } = this.#service.resume ? takeReturn(wire.handshake.auth) : { hello: wire.handshake.auth };
      wire.data = await this.#service.admit(hello, left.signal);
      const resumption = this.#service.resume?.(wire.data, last);
      if (resumption) {
        this.#resumePoints.set(wire, resumption.resumePoint);
        givePid(wire, resumption.isWhole && pid !== undefined ? pid : toPid(wire.id, resumption.resumePoint));
      }
    } catch (error) {
      return next(toConnectError(error));
    }
    next();
  }

  #join(wire: IoSocket<W>): void {
    const connection: Connection<W> = { socket: { id: wire.id, who: wire.data }, wire };
    this.#connections.set(wire.id, connection);
    wire.onAny((event: unknown, ...args: unknown[]) => this.#receive(connection, event, args));
    wire.once("disconnect", (reason) => {
      // Without its only namespace, the underlying connection is useless.
      if (reason === "client namespace disconnect") wire.conn.close();
      this.#leave(connection);
    });
    const resumePoint = this.#resumePoints.get(wire);
    this.#resumePoints.delete(wire);
    this.#service.joined(connection.socket, resumePoint);
  }

  #receive(connection: Connection<W>, event: unknown, args: readonly unknown[]): void {
    const { id } = connection.socket;
    // Socket.IO passes on data that it had read before the connection ended.
    if (!this.has(id)) return;
    // Channels have no answers, so a client's callback is never called.
    const [payload, ...more] = typeof args.at(-1) === "function" ? args.slice(0, -1) : args;
    if (typeof event !== "string" || more.length > 0) {
      this.#given.log.warn("A realtime event that is not a name and one payload was dropped", {
        path: this.#service.path,
        socket: id,
      });
      return;
    }
    this.#service.receive(connection.socket, event, payload);
  }

  #outboxOf({ wire }: Connection<W>): Outbox {
    return this.#outboxes.get(wire.conn)!;
  }

  /** Holds the answers that a client asks for to the limits: it may connect to foreign namespaces, send pings, and read nothing. */
  #bound(conn: EngineConnection): void {
    const { backlog } = this.#given.limits;
    const outbox = new Outbox(conn);
    this.#outboxes.set(conn, outbox);
    conn.once("close", () => outbox.end());
    // The answers to one packet may exceed the limits. They are noticed with the next.
    conn.on("packet", () => {
      if (outbox.exceeds(backlog)) this.#cut(conn);
    });
    watchPongs(conn, backlog, () => this.#cut(conn));
  }

  /** Without a goodbye: Socket.IO clients do not reconnect after a disconnect by the service. */
  #cut(conn: EngineConnection): void {
    if (conn.readyState !== "open") return;
    const socket = [...this.#connections.values()].find(({ wire }) => wire.conn === conn)?.socket.id;
    this.#given.log.warn("A realtime client that reads too slowly was cut", { path: this.#service.path, socket });
    const { transport } = conn;
    conn.close(true);
    // A WebSocket would keep the waiting data until the client answers the closing handshake.
    terminate(transport);
  }

  #leave(connection: Connection<W>): void {
    this.#connections.delete(connection.socket.id);
    this.#outboxOf(connection).end();
    this.#service.gone(connection.socket);
  }
}

function refuse(response: ServerResponse, { status, code, message, headers }: Refusal): void {
  const body = JSON.stringify({ error: code, message });
  response.writeHead(status, {
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "x-content-type-options": "nosniff",
    "content-length": Buffer.byteLength(body),
    connection: "close",
  });
  response.end(body);
}

/** Socket.IO sends only message and `data` of an error. */
function toConnectError(error: unknown): Error {
  const { code, message } = ports.ConnectionRefused.is(error) ? error : { code: "internal_error", message: "Internal error" };
  return Object.assign(new Error(message), { data: { code } });
}
