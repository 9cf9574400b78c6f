import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { connect } from "node:tls";
import type { Nginx } from "../../harness/nginx.ts";

/** A port of this machine that leads to nginx over TLS, for clients that do not trust its certificate. */
export interface PlainDoor extends AsyncDisposable {
  readonly port: number;
}

/** Open a port that leads to the server of this name. */
export async function openPlainDoor({ port, certificate }: Nginx, servername: string): Promise<PlainDoor> {
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const behind = connect({ port, host: "127.0.0.1", servername, ca: certificate });
    for (const [socket, other] of [
      [client, behind],
      [behind, client],
    ] as const) {
      open.add(socket);
      // A failed socket closes, too.
      socket.on("error", () => {});
      socket.once("close", () => {
        open.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
