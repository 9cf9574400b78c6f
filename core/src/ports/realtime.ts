import { definePort, type Port } from "../grammar/port.ts";

/** Long-lived two-way connections with clients: named events in both directions (specification 4.6 and 6.2). */
export interface Realtime {
  /**
   * Listen on one path of one surface. Client input arrives unparsed: `openChannel` parses it. Throws a sentence if this path of
   * this surface is already served.
   */
  serve<W>(service: RealtimeService<W>): RealtimeConnections;
}

/** One realtime service: its path, and its handlers for each event of a connection. */
export interface RealtimeService<W> {
  readonly surface: string;
  /** With its leading and trailing `/`: `/socket.io/`. */
  readonly path: string;
  /**
   * Accepts or refuses one connection by the client's hello: returns the client's identity, or throws. The client sees a
   * ConnectionRefused. For any other error, it sees only that there was an internal error. `signal` aborts when the client leaves
   * before the decision.
   */
  admit(hello: unknown, signal: AbortSignal): Promise<W>;
  /**
   * Present if clients can continue after a broken connection. Called once after `admit` and before `joined`. `last` is the resume point
   * of the last event that the client has. For a client without an event, it is the resume point at which its earlier connection began. For
   * a client without an earlier connection, it is undefined. A client can send any text as its resume point. Returns where this
   * connection begins; undefined if the service keeps no resume point.
   */
  resume?(who: W, last: string | undefined): Resumption | undefined;
  /** The connection is established. Events can be sent to it from now on. `resumePoint` is the answer of `resume`. */
  joined(socket: RealtimeSocket<W>, resumePoint: string | undefined): void;
  /** One event from a client, in sending order. Never before `joined`, never after `gone`. */
  receive(socket: RealtimeSocket<W>, event: string, payload: unknown): void;
  /** The connection has ended, on either side. Called once per `joined`. */
  gone(socket: RealtimeSocket<W>): void;
}

/** The position where a connection begins in the client's event stream. */
export interface Resumption {
  /** Opaque to the transport and to the client. */
  readonly resumePoint: string;
  /** All events since the client's last one will be sent: the client may be told that it misses no event. */
  readonly isWhole: boolean;
}

/** One connection. */
export interface RealtimeSocket<W> {
  /** Identifies one connection, not a client: a client that reconnects gets another ID. Never reused. */
  readonly id: string;
  /** The answer of `admit`. */
  readonly who: W;
}

/** The connections of one service. */
export interface RealtimeConnections {
  /**
   * Send one event to one connection, in order. False if the connection does not exist. True does not guarantee delivery. `resumePoint`
   * is the client's position once it has this event. A client that reconnects presents its last resume point.
   */
  send(socketId: string, event: string, payload: unknown, resumePoint?: string): boolean;
  has(socketId: string): boolean;
  /**
   * Waits until everything sent to this connection so far has left, as far as its transport can tell. False if the connection
   * ends first or does not exist. A connection that is too far behind is ended: to send many events, send them in pages and wait
   * after each page.
   */
  drained(socketId: string): Promise<boolean>;
  /** End one connection. False if it does not exist. */
  drop(socketId: string): boolean;
  /** Refuse new connections, end all others and release the path. A second call has no effect. */
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

/** The port of realtime. */
export const realtime: Port<Realtime> = definePort<Realtime>("realtime");
