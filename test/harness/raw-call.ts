import { connect } from "node:net";

/** Sends bytes to a server over a new connection. Returns all received bytes when the connection closes, also after a reset. */
export function rawCall(origin: string, ...chunks: readonly (string | Uint8Array)[]): Promise<string> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const received: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => {
      for (const chunk of chunks) socket.write(chunk);
    });
    socket.on("data", (chunk: Buffer) => received.push(chunk));
    socket.on("error", () => {});
    socket.on("close", () => resolve(Buffer.concat(received).toString("latin1")));
  });
}

/** Sends these bytes and disconnects without waiting for an answer: a cut upload. Resolves when the connection is closed. */
export function cutCall(origin: string, bytes: string | Uint8Array): Promise<void> {
  const { hostname, port } = new URL(origin);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes, () => socket.resetAndDestroy()));
    socket.on("error", () => {});
    socket.on("close", () => resolve());
  });
}

/** The status of a raw answer; 0 without an answer. */
export function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
}
