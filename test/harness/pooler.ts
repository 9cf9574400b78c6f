import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A server before PostgreSQL that clients can tell from it as they can tell a pooler: it gives sessions numbers of its own. */
export interface Pooler extends AsyncDisposable {
  /** Where clients connect, on 127.0.0.1. */
  readonly port: number;
  /** How many clients have connected. */
  readonly connections: number;
}

/** PostgreSQL's message with the number of a session: `K`, its length, the number, a key. */
const KEY_DATA = Buffer.from([0x4b, 0, 0, 0, 12]);

/** Open it before a server of 127.0.0.1. */
export async function openPooler(target: number): Promise<Pooler> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    connections++;
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    near.pipe(far);
    far.on("data", (data: Buffer) => {
      const at = data.indexOf(KEY_DATA);
      if (at >= 0) data.writeInt32BE(4711, at + KEY_DATA.length);
      near.write(data);
    });
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
