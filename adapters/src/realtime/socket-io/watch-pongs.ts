import type { Socket as Connection, Transport } from "engine.io";
import type { SocketLimits } from "../socket-limits.ts";

/** What is used of the WebSocket under a transport of Engine.IO. Its types do not declare it. */
interface WebSocketOf {
  readonly bufferedAmount: number;
  on(event: "ping", listener: () => void): void;
  terminate(): void;
}

function webSocketOf(transport: Transport): WebSocketOf | undefined {
  return transport.name === "websocket" ? (transport as unknown as { readonly socket: WebSocketOf }).socket : undefined;
}

/** Ends the WebSocket of a transport without a closing handshake. */
export function terminate(transport: Transport): void {
  webSocketOf(transport)?.terminate();
}

/**
 * Calls `exceeded` when more answers to pings of the WebSocket protocol wait for a client than its limits allow. The WebSocket sends them
 * by itself, past Engine.IO.
 */
export function watchPongs(connection: Connection, { events, bytes }: SocketLimits["backlog"], exceeded: () => void): void {
  const watch = (transport: Transport) => {
    const socket = webSocketOf(transport);
    let waiting = 0;
    socket?.on("ping", () => {
      waiting = socket.bufferedAmount === 0 ? 0 : waiting + 1;
      if (waiting > events || socket.bufferedAmount > bytes) exceeded();
    });
  };
  watch(connection.transport);
  connection.once("upgrade", watch);
}
