import * as v from "valibot";
import { ServiceError } from "./error.ts";
import { ConnectionRefused, type Realtime, type RealtimeSocket } from "./ports/realtime.ts";
import type { Log, Telemetry } from "./ports/telemetry.ts";
import type { Schema } from "./route.ts";
import type { Scope } from "./scope.ts";

/** A realtime channel, declared like a contract: what clients may send and what the service says (specification 6.2). Pure data. */
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
  /** Answers who the client is, or throws: then the connection is refused, with code and message of a ServiceError. */
  admit(hello: v.InferOutput<C["hello"]>, signal: AbortSignal): W | Promise<W>;
  /** One per declared event. What it throws is logged; the connection stays. */
  readonly receive: {
    readonly [K in keyof C["receives"] & string]: (
      from: RealtimeSocket<W>,
      data: v.InferOutput<C["receives"][K]>,
    ) => void | Promise<void>;
  };
  /** The client can be spoken to from now on. */
  joined?(from: RealtimeSocket<W>): void | Promise<void>;
  /** The client is gone. */
  gone?(from: RealtimeSocket<W>): void | Promise<void>;
}

/** An open channel. */
export interface Channel<C extends ChannelContract> {
  /** Makes the declared messages: `channel.send(socketId, channel.say["query:started"]({ … }))`. */
  readonly say: ChannelSay<C>;
  /** False when there is no such connection (any more). */
  send(socketId: string, message: ChannelMessage<C>): boolean;
  has(socketId: string): boolean;
  /**
   * Waits until all that was sent to this connection so far has left; false when it ends first, or is not there. For replays: a client that
   * is too far behind is cut, so send a page, wait, and send the next.
   */
  drained(socketId: string): Promise<boolean>;
  /** End one connection, for example when its token was revoked. False when there is none. */
  drop(socketId: string): boolean;
}

/**
 * Serve a channel until the app closes. The hello and every payload are parsed with the contract's schemas: a hello that does not fit
 * is refused (`invalid_hello`); an event that is not declared, or whose payload does not fit, is dropped and logged without its content,
 * since the channel has no answers (specification 4.6). Throws a sentence when the path is already served.
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
    joined: (socket) => guarded("joined", socket.id, () => handlers.joined?.(socket)),
    gone: (socket) => guarded("gone", socket.id, () => handlers.gone?.(socket)),
    receive(socket, event, payload) {
      const schema = Object.hasOwn(contract.receives, event) ? contract.receives[event] : undefined;
      if (!schema)
        return log.warn("A realtime event that is not declared was dropped", { path: contract.path, socket: socket.id });
      const parsed = v.safeParse(schema, payload);
      if (!parsed.success) {
        return log.warn("A realtime event whose payload does not fit was dropped", {
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
    send: (socketId, message) => connections.send(socketId, message.event, message.data),
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

/** One handler that fails must neither end the connection nor the process. */
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
