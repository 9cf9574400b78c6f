import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";

/**
 * Answer a connection that asked for another protocol with an HTTP response, and end it. `body` is sent as JSON. Nothing of the caller's may
 * go into `headers`: they are written as they are.
 */
export function refuseUpgrade(
  socket: Duplex,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = JSON.stringify(body);
  const lines = Object.entries({
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(text)),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  // Whoever left meanwhile needs no answer.
  socket.on("error", () => {});
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n${text}`);
}
