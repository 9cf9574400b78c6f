import { createServer } from "node:net";

/** Tries to listen at an address. Returns undefined if that works, else the system's error code. */
export function tryListen(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.name));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}
