import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";

/** Below the ports that the system gives out by itself (Linux: from 32,768; macOS and Windows: from 49,152). */
const LOWEST = 20_000;
const HIGHEST = 32_000;

/**
 * A port of 127.0.0.1 that nothing listens on now. The system gives out ports above it, so that servers which other tests start
 * meanwhile do not take it.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** A port of 127.0.0.1 that refuses every connection until it is disposed of. */
export interface RefusingPort extends AsyncDisposable {
  readonly port: number;
}

/**
 * Hold a port that refuses connections: the near end of an open connection. The system gives it to no server, whereas the port of a
 * closed server soon belongs to another one.
 */
export async function refusingPort(): Promise<RefusingPort> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [[far]] = await Promise.all([once(server, "connection"), once(socket, "connect")]);
  const port = socket.localPort as number;
  return {
    port,
    async [Symbol.asyncDispose]() {
      socket.destroy();
      far.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
