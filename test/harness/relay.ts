import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

/** A port of 127.0.0.1 whose connections lead elsewhere. */
export interface Relay extends AsyncDisposable {
  readonly port: number;
  /** How many clients have connected. */
  readonly connections: number;
}

/**
 * Open a port. `connectFar` opens the connection behind a client's. `change` may change the bytes of each chunk that comes back; default: they pass
 * as they are.
 */
export async function openRelay(connectFar: () => Socket, change?: (chunk: Buffer) => void): Promise<Relay> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((near) => {
    const far = connectFar();
    connections++;
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      // A failed socket closes, too.
      socket.on("error", () => {});
      socket.once("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    if (change) far.on("data", change);
    near.pipe(far).pipe(near);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
