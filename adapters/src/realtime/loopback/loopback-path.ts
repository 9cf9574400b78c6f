import { randomUUID } from "node:crypto";
import { ports } from "@portico/core";

/** The client's side of one connection. */
export interface LoopbackClient {
  /** The connection's id, as the service names it. */
  readonly id: string;
  readonly connected: boolean;
  /** Send one event. Nothing happens on a connection that is over. */
  emit(event: string, payload: unknown): void;
  /** Listen to one event, or to `disconnect`, which is told when the connection is over. */
  on(event: string, listener: (payload: unknown) => void): void;
  /** End the connection from this side. */
  leave(): void;
}

interface Connection<W> {
  readonly socket: ports.RealtimeSocket<W>;
  readonly client: Client;
}

/** One served path: both sides hand each other copies, in order, never within the call that sends. */
export class LoopbackPath<W> implements ports.RealtimeConnections {
  readonly service: ports.RealtimeService<W>;
  readonly #freed: () => void;
  readonly #connections = new Map<string, Connection<W>>();
  readonly #closing = new AbortController();

  constructor(service: ports.RealtimeService<W>, freed: () => void) {
    this.service = service;
    this.#freed = freed;
  }

  async connect(hello: unknown, leaving?: AbortSignal): Promise<LoopbackClient> {
    const over = leaving ? AbortSignal.any([leaving, this.#closing.signal]) : this.#closing.signal;
    const who = await this.#admit(copy(hello), over);
    if (over.aborted) throw new ports.ConnectionRefused("not_served", "Nothing listens here");
    const socket: ports.RealtimeSocket<W> = { id: randomUUID(), who };
    const client = new Client(socket.id, {
      emit: (event, payload) => this.#connections.has(socket.id) && this.service.receive(socket, event, payload),
      leave: () => this.drop(socket.id),
    });
    this.#connections.set(socket.id, { socket, client });
    this.service.joined(socket);
    leaving?.addEventListener("abort", () => client.leave(), { once: true });
    return client;
  }

  send(socketId: string, event: string, payload: unknown): boolean {
    const connection = this.#connections.get(socketId);
    connection?.client.deliver(event, copy(payload));
    return connection !== undefined;
  }

  has(socketId: string): boolean {
    return this.#connections.has(socketId);
  }

  async drained(socketId: string): Promise<boolean> {
    // What was sent is delivered in microtasks, in order: this one comes after.
    await Promise.resolve();
    return this.has(socketId);
  }

  drop(socketId: string): boolean {
    const connection = this.#connections.get(socketId);
    if (!connection) return false;
    this.#connections.delete(socketId);
    connection.client.end();
    this.service.gone(connection.socket);
    return true;
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    for (const id of [...this.#connections.keys()]) this.drop(id);
    this.#freed();
  }

  async #admit(hello: unknown, over: AbortSignal): Promise<W> {
    try {
      return await this.service.admit(hello, over);
    } catch (error) {
      // A client never sees what else went wrong, as over a network.
      if (ports.ConnectionRefused.is(error)) throw new ports.ConnectionRefused(error.code, error.message);
      throw new ports.ConnectionRefused("internal_error", "Internal error");
    }
  }
}

class Client implements LoopbackClient {
  readonly id: string;
  readonly #service: { emit(event: string, payload: unknown): unknown; leave(): unknown };
  readonly #listeners = new Map<string, Array<(payload: unknown) => void>>();
  #connected = true;
  /** What came before whoever connected listened to anything. */
  #early: (() => void)[] | undefined = [];

  constructor(id: string, service: { emit(event: string, payload: unknown): unknown; leave(): unknown }) {
    this.id = id;
    this.#service = service;
  }

  get connected(): boolean {
    return this.#connected;
  }

  emit(event: string, payload: unknown): void {
    if (!this.#connected) return;
    const sent = copy(payload);
    queueMicrotask(() => this.#service.emit(event, sent));
  }

  on(event: string, listener: (payload: unknown) => void): void {
    const early = this.#early;
    this.#early = undefined;
    // In the order of everything that is told, and after whatever else is listened to in this turn.
    for (const tell of early ?? []) queueMicrotask(tell);
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
  }

  leave(): void {
    queueMicrotask(() => this.#service.leave());
  }

  deliver(event: string, payload: unknown): void {
    this.#soon(() => this.#tell(event, payload));
  }

  end(): void {
    this.#connected = false;
    this.#soon(() => this.#tell("disconnect", undefined));
  }

  #soon(tell: () => void): void {
    if (this.#early) this.#early.push(tell);
    else queueMicrotask(tell);
  }

  #tell(event: string, payload: unknown): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(payload);
  }
}

/** What arrives is what JSON can say, and nobody else's object. */
function copy(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}
