import { definePort, type Port } from "../port.ts";

/** Two-way connections with clients that stay: named events in both directions (specification 4.6 and 6.2). */
export interface Realtime {
  /**
   * Listen on one path of one surface. What the clients send arrives unparsed: `openChannel` parses it. Throws a sentence when that path
   * of that surface is already served.
   */
  serve<W>(service: RealtimeService<W>): RealtimeConnections;
}

export interface RealtimeService<W> {
  readonly surface: string;
  /** With its leading and trailing `/`: `/socket.io/`. */
  readonly path: string;
  /**
   * Decides on one connection by what the client presents: answers who it is, or throws. ConnectionRefused reaches the client; of
   * anything else it learns only that there was an internal error. `signal` aborts when the client leaves before the decision.
   */
  admit(hello: unknown, signal: AbortSignal): Promise<W>;
  /** The connection stands; events can be sent to it from now on. */
  joined(socket: RealtimeSocket<W>): void;
  /** One event from a client, in the order in which it sent them. Never before `joined`, never after `gone`. */
  receive(socket: RealtimeSocket<W>, event: string, payload: unknown): void;
  /** The connection is over, whoever ended it. Once per `joined`. */
  gone(socket: RealtimeSocket<W>): void;
}

export interface RealtimeSocket<W> {
  /** Names one connection, not a client: a client that comes back has another. Never reused. */
  readonly id: string;
  /** What `admit` answered. */
  readonly who: W;
}

export interface RealtimeConnections {
  /** Send one event to one connection, in order. False when there is no such connection; true promises no arrival. */
  send(socketId: string, event: string, payload: unknown): boolean;
  has(socketId: string): boolean;
  /**
   * Waits until all that was sent to this connection so far has left, as far as its transport can tell; false when the connection ends
   * first, or is not there. Whoever sends much at once sends it in pages and waits for each, because a connection that is too far behind is ended.
   */
  drained(socketId: string): Promise<boolean>;
  /** End one connection. False when there is none. */
  drop(socketId: string): boolean;
  /** Refuse new connections, end all others and give the path free. Twice is once. */
  close(): Promise<void>;
}

/** Thrown by `admit`: the client sees code and message, so neither may hold a secret. */
export class ConnectionRefused extends Error {
  override readonly name = "ConnectionRefused";
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Recognised by name, so that it works across duplicate copies of this package. */
  static is(value: unknown): value is ConnectionRefused {
    return value instanceof Error && value.name === "ConnectionRefused" && "code" in value;
  }
}

export const realtime: Port<Realtime> = definePort<Realtime>("realtime");
