import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { Clock } from "../ports/clock.ts";

/** How long a refused upload may continue. */
const LINGER_MS = 2_000;

/**
 * Reads and discards the rest of a refused upload, so that its caller can read the refusal instead of a connection reset. A
 * caller that sends for longer is cut off. `connection: close` would not help: Node then resets the upload at once.
 */
export function linger(request: IncomingMessage, clock: Clock): void {
  const timer = clock.after(LINGER_MS, () => request.socket.destroy());
  request.once("close", () => timer.cancel());
  request.on("error", () => {});
  request.resume();
}

/**
 * On fetch hosts, cancels the source of an unread body after the same time. It does not cancel at once: Node's stream of a
 * `FormData` or a `Blob` throws an unhandled rejection if it is cancelled early. After this time, that stream has passed on all
 * its bytes.
 */
export function abandon(body: Readable, clock: Clock): void {
  if (body.destroyed) return;
  body.on("error", () => {});
  clock.after(LINGER_MS, () => body.destroy());
}
