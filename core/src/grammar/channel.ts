import * as v from "valibot";
import { ServiceError } from "./error.ts";
import { ConnectionRefused, type Realtime, type RealtimeSocket, type Resumption } from "../ports/realtime.ts";
import type { Log, Telemetry } from "../ports/telemetry.ts";
import type { Schema } from "./contract.ts";
import type { Scope } from "./scope.ts";

/**
 * A realtime channel, declared like a contract: the events that clients and the service may send (specification 6.2). Pure data.
 */
export interface ChannelContract {
  readonly surface: string;
  /** Where the transport listens on that surface, for example `/socket.io/`. */
  readonly path: `/${string}/`;
  readonly summary: string;
  /** The authentication object that a client presents when it connects. */
  readonly hello: Schema;
  /** Client to server. */
  readonly receives: Readonly<Record<string, Schema>>;
  /** Server to client. */
  readonly sends: Readonly<Record<string, Schema>>;
}

/** Declare a realtime channel. */
export function defineChannel<const C extends ChannelContract>(contract: C): C {
  return contract;
}

/** The only messages that a plugin may send on its channel. */
export type ChannelSay<C extends ChannelContract> = {
  readonly [K in keyof C["sends"] & string]: (data: v.InferInput<C["sends"][K]>) => {
    readonly event: K;
    readonly data: v.InferInput<C["sends"][K]>;
  };
};

/** One message of a channel, as its `say` makes them. */
export type ChannelMessage<C extends ChannelContract> = {
  [K in keyof C["sends"] & string]: { readonly event: K; readonly data: v.InferInput<C["sends"][K]> };
}[keyof C["sends"] & string];

/** What a plugin does with a channel: admit a hello, and receive each declared event with its parsed payload. */
export interface ChannelHandlers<C extends ChannelContract, W = unknown> {
  /**
   * Returns the identity of the client, or throws. If it throws, the connection is refused with code and message of a
   * ServiceError.
   */
  admit(hello: v.InferOutput<C["hello"]>, signal: AbortSignal): W | Promise<W>;
  /** One per declared event. What it throws is logged; the connection stays. */
  readonly receive: {
    readonly [K in keyof C["receives"] & string]: (
      from: RealtimeSocket<W>,
      data: v.InferOutput<C["receives"][K]>,
    ) => void | Promise<void>;
  };
  /**
   * Where a client that reconnects continues. `last` is the resume point of the last event that the client has, as `send` gave it. It is
   * untrusted text: parse it. Must not throw.
   */
  resume?(who: W, last: string | undefined): Resumption | undefined;
  /** From now on, events can be sent to the client. `resumePoint` is the answer of `resume`. */
  joined?(from: RealtimeSocket<W>, resumePoint: string | undefined): void | Promise<void>;
  /** The client has disconnected. */
  gone?(from: RealtimeSocket<W>): void | Promise<void>;
}

/** An open channel. */
export interface Channel<C extends ChannelContract> {
  /** Makes the declared messages: `channel.send(socketId, channel.say["query:started"]({ … }))`. */
  readonly say: ChannelSay<C>;
  /** Returns false if there is no such connection (any more). `resumePoint`: the client's position once it has this message. */
  send(socketId: string, message: ChannelMessage<C>, resumePoint?: string): boolean;
  has(socketId: string): boolean;
  /**
   * Waits until everything sent to this connection so far has left. Returns false if the connection ends first or does not exist.
   * For replays: a client that is too far behind is disconnected, so send a page, wait, and send the next.
   */
  drained(socketId: string): Promise<boolean>;
  /** End one connection, for example when its token was revoked. Returns false if it does not exist. */
  drop(socketId: string): boolean;
}

/**
 * Serve a channel until the app closes. The hello and every payload are parsed with the contract's schemas. An invalid hello is
 * refused (`invalid_hello`). An undeclared event, or one with an invalid payload, is dropped and logged without its content,
 * because the channel has no answers (specification 4.6). Throws a sentence when the path is already served.
 */
export function openChannel<const C extends ChannelContract, W>(
  given: { readonly realtime: Realtime; readonly telemetry: Telemetry },
  contract: C,
  handlers: ChannelHandlers<NoInfer<C>, W>,
  scope: Scope,
): Channel<C> {
  const { log } = given.telemetry;
  const receivers = handlers.receive as Readonly<
    Record<string, (from: RealtimeSocket<W>, data: unknown) => void | Promise<void>>
  >;
  const guarded = (what: string, socketId: string, run: () => void | Promise<void>) => void attempt(log, what, socketId, run);

  const connections = given.realtime.serve<W>({
    surface: contract.surface,
    path: contract.path,
    admit: (hello, signal) => admit(contract, handlers, log, hello, signal),
    ...(handlers.resume && { resume: (who: W, last: string | undefined) => handlers.resume!(who, last) }),
    joined: (socket, resumePoint) => guarded("joined", socket.id, () => handlers.joined?.(socket, resumePoint)),
    gone: (socket) => guarded("gone", socket.id, () => handlers.gone?.(socket)),
    receive(socket, event, payload) {
      const schema = Object.hasOwn(contract.receives, event) ? contract.receives[event] : undefined;
      if (!schema)
        return log.warn("A realtime event that is not declared was dropped", { path: contract.path, socket: socket.id });
      const parsed = v.safeParse(schema, payload);
      if (!parsed.success) {
        return log.warn("A realtime event with an invalid payload was dropped", {
          path: contract.path,
          socket: socket.id,
          event,
        });
      }
      guarded(event, socket.id, () => receivers[event]?.(socket, parsed.output));
    },
  });
  scope.onClose(() => connections.close());

  return {
    say: sayings(contract) as ChannelSay<C>,
    send: (socketId, message, resumePoint) => connections.send(socketId, message.event, message.data, resumePoint),
    has: (socketId) => connections.has(socketId),
    drained: (socketId) => connections.drained(socketId),
    drop: (socketId) => connections.drop(socketId),
  };
}

async function admit<C extends ChannelContract, W>(
  contract: C,
  handlers: ChannelHandlers<C, W>,
  log: Log,
  hello: unknown,
  signal: AbortSignal,
): Promise<W> {
  const parsed = v.safeParse(contract.hello, hello);
  if (!parsed.success) throw new ConnectionRefused("invalid_hello", "The authentication object does not match its schema");
  try {
    return await handlers.admit(parsed.output as v.InferOutput<C["hello"]>, signal);
  } catch (error) {
    if (ServiceError.is(error) && error.status < 500) throw new ConnectionRefused(error.code, error.message, { cause: error });
    if (!signal.aborted) log.error("A realtime client could not be admitted", { path: contract.path }, error);
    throw new ConnectionRefused("internal_error", "Internal error", { cause: error });
  }
}

/** A handler that fails must end neither the connection nor the process. */
async function attempt(log: Log, what: string, socketId: string, run: () => void | Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    log.error(`A realtime handler failed: ${what}`, { socket: socketId }, error);
  }
}

function sayings(contract: ChannelContract): Readonly<Record<string, (data: unknown) => unknown>> {
  return Object.fromEntries(Object.keys(contract.sends).map((event) => [event, (data: unknown) => ({ event, data })]));
}
