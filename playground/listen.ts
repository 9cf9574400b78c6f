import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { attach } from "@portico/core/node";

/** A listener that only this machine can reach. Disposing closes it and all its connections. */
export interface Listening extends AsyncDisposable {
  readonly url: string;
}

/** Listen on a port that the system chooses. With a surface, also accept its realtime connections. */
export async function listen(
  listener: (request: IncomingMessage, response: ServerResponse) => unknown,
  surface?: Parameters<typeof attach>[1],
): Promise<Listening> {
  const server = createServer(listener);
  const attached = surface && attach(server, surface);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      attached?.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
