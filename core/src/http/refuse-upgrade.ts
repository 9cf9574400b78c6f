import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { NO_SNIFFING } from "./answer-headers.ts";

/**
 * Answer a connection that asked for another protocol with an HTTP response, and end it. `body` is sent as JSON. `headers` are
 * written unchanged, so they must not hold input of the caller.
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
    ...NO_SNIFFING,
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(text)),
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  // A caller that has left meanwhile needs no answer.
  socket.on("error", () => {});
  socket.once("finish", () => socket.destroy());
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n${text}`);
}
