import { randomUUID } from "node:crypto";
import { ports } from "@portico/core";

/** The client's side of one connection. */
export interface LoopbackClient {
  /** The ID of the connection at the service. */
  readonly id: string;
  readonly connected: boolean;
  /** The client's position in its event stream. Pass it to `connect` as `last` to continue from it. */
  readonly place: string | undefined;
  /** The service sends all events since `last`. */
  readonly isWhole: boolean;
  /** Send one event. Does nothing on a connection that has ended. */
  emit(event: string, payload: unknown): void;
  /**
   * Listen to one event, or to `disconnect`, which is emitted when the connection has ended. `place` belongs to the event, if it
   * has one.
   */
  on(event: string, listener: (payload: unknown, place?: string) => void): void;
  /** End the connection from this side. */
  leave(): void;
}

interface Connection<W> {
  readonly socket: ports.RealtimeSocket<W>;
  readonly client: Client;
}

/** One served path. Both sides give each other copies, in order, and never within the call that sends. */
export class LoopbackPath<W> implements ports.RealtimeConnections {
  readonly service: ports.RealtimeService<W>;
  readonly #freed: () => void;
  readonly #connections = new Map<string, Connection<W>>();
  readonly #closing = new AbortController();

  constructor(service: ports.RealtimeService<W>, freed: () => void) {
    this.service = service;
    this.#freed = freed;
  }

  async connect(hello: unknown, leaving?: AbortSignal, last?: string): Promise<LoopbackClient> {
    const over = leaving ? AbortSignal.any([leaving, this.#closing.signal]) : this.#closing.signal;
    const who = await this.#admit(copy(hello), over);
    if (over.aborted) throw new ports.ConnectionRefused("not_served", "Nothing listens here");
    const socket: ports.RealtimeSocket<W> = { id: randomUUID(), who };
    const resumption = this.service.resume?.(who, last);
    const client = new Client(socket.id, resumption, {
      emit: (event, payload) => this.#connections.has(socket.id) && this.service.receive(socket, event, payload),
      leave: () => this.drop(socket.id),
    });
    this.#connections.set(socket.id, { socket, client });
    this.service.joined(socket, resumption?.resumePoint);
    leaving?.addEventListener("abort", () => client.leave(), { once: true });
    return client;
  }

  send(socketId: string, event: string, payload: unknown, place?: string): boolean {
    const connection = this.#connections.get(socketId);
    connection?.client.deliver(event, copy(payload), place);
    return connection !== undefined;
  }

  has(socketId: string): boolean {
    return this.#connections.has(socketId);
  }

  async drained(socketId: string): Promise<boolean> {
    // Events are delivered in microtasks, in order: this one runs after them.
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
      // As over a network, a client does not see other errors.
      if (ports.ConnectionRefused.is(error)) throw new ports.ConnectionRefused(error.code, error.message);
      throw new ports.ConnectionRefused("internal_error", "Internal error");
    }
  }
}

class Client implements LoopbackClient {
  readonly id: string;
  readonly isWhole: boolean;
  readonly #service: { emit(event: string, payload: unknown): unknown; leave(): unknown };
  readonly #listeners = new Map<string, Array<(payload: unknown, place?: string) => void>>();
  #connected = true;
  #place: string | undefined;
  /** Events that arrived before the client added its listeners. */
  #early: (() => void)[] | undefined = [];

  constructor(
    id: string,
    resumption: ports.Resumption | undefined,
    service: { emit(event: string, payload: unknown): unknown; leave(): unknown },
  ) {
    this.id = id;
    this.isWhole = resumption?.isWhole ?? false;
    this.#place = resumption?.resumePoint;
    this.#service = service;
  }

  get place(): string | undefined {
    return this.#place;
  }

  get connected(): boolean {
    return this.#connected;
  }

  emit(event: string, payload: unknown): void {
    if (!this.#connected) return;
    const sent = copy(payload);
    queueMicrotask(() => this.#service.emit(event, sent));
  }

  on(event: string, listener: (payload: unknown, place?: string) => void): void {
    const early = this.#early;
    this.#early = undefined;
    // In the order of all events, and after listeners that are added in this turn.
    for (const tell of early ?? []) queueMicrotask(tell);
    this.#listeners.set(event, [...(this.#listeners.get(event) ?? []), listener]);
  }

  leave(): void {
    queueMicrotask(() => this.#service.leave());
  }

  deliver(event: string, payload: unknown, place?: string): void {
    this.#soon(() => {
      this.#place = place ?? this.#place;
      this.#tell(event, payload, place);
    });
  }

  end(): void {
    this.#connected = false;
    this.#soon(() => this.#tell("disconnect", undefined));
  }

  #soon(tell: () => void): void {
    if (this.#early) this.#early.push(tell);
    else queueMicrotask(tell);
  }

  #tell(event: string, payload: unknown, place?: string): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(payload, place);
  }
}

/** An arriving value is JSON, and a separate copy. */
function copy(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}
