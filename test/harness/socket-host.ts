import { type SocketIoOptions, socketIoRealtime } from "@portico/adapters/realtime/socket-io";
import { io, type ManagerOptions, type Socket, type SocketOptions } from "socket.io-client";
import { openRealtimeHost, type RealtimeHost } from "./realtime-host.ts";

export type ClientOptions = Partial<ManagerOptions & SocketOptions>;

/** An app with realtime over Socket.IO, its surface `agent` on a server of its own; `workflow` is there, too. */
export interface SocketHost extends RealtimeHost {
  /**
   * Connect the real client. Rejects with `code` and `message` of a refusal. Clients that are still connected at the end are
   * disconnected.
   */
  connect(hello?: unknown, options?: ClientOptions): Promise<Socket>;
}

/** The ways in which the real client connects. */
export const clientKinds: Readonly<Record<string, readonly ("polling" | "websocket")[]>> = {
  "websocket only": ["websocket"],
  "polling only": ["polling"],
  "polling, then websocket": ["polling", "websocket"],
};

export async function openSocketHost(options?: SocketIoOptions): Promise<SocketHost> {
  const host = await openRealtimeHost(socketIoRealtime(options));
  const clients: Socket[] = [];
  return {
    ...host,
    connect(hello = {}, more = {}) {
      const client = io(host.origin, { path: "/live/", auth: hello as object, reconnection: false, forceNew: true, ...more });
      clients.push(client);
      return connected(client);
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.disconnect();
      await host[Symbol.asyncDispose]();
    },
  };
}

/** Resolves when the client is connected. Rejects with code and message if it is refused. */
export function connected(client: Socket): Promise<Socket> {
  return new Promise((resolve, reject) => {
    client.once("connect", () => resolve(client));
    client.once("connect_error", (error) =>
      reject(Object.assign(new Error(error.message), { code: (error as { data?: { code?: string } }).data?.code })),
    );
  });
}

/** The first argument of the next such event of a client, its manager or its engine: none of them is an emitter of Node. */
export function told(
  emitter: { once(event: never, listener: (what: unknown) => void): unknown },
  event: string,
): Promise<unknown> {
  return new Promise((resolve) => emitter.once(event as never, resolve));
}
