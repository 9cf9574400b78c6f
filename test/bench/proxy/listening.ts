import type { AddressInfo, Server } from "node:net";

/** Listen where there is room on this machine, and tell the parent process where. */
export function listening(server: Server): void {
  server.listen({ host: "127.0.0.1", port: 0, backlog: 1024 }, () => {
    console.log(JSON.stringify({ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }));
  });
}
