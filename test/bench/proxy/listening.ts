import type { AddressInfo, Server } from "node:net";

/** Listens on a free port and prints the origin as a line of JSON for the parent process. */
export function listening(server: Server): void {
  server.listen({ host: "127.0.0.1", port: 0, backlog: 1024 }, () => {
    console.log(JSON.stringify({ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
  });
}
