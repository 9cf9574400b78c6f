import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { Clock } from "../ports/clock.ts";

/** How long an upload that was already refused may go on. */
const LINGER_MS = 2_000;

/**
 * The rest of a refused upload is read and thrown away, so that its caller reads the refusal instead of a reset connection; a caller
 * that goes on for longer is cut off. `connection: close` would not do: Node then resets at once whatever is still arriving.
 */
export function linger(request: IncomingMessage, clock: Clock): void {
  const timer = clock.after(LINGER_MS, () => request.socket.destroy());
  request.once("close", () => timer.cancel());
  request.on("error", () => {});
  request.resume();
}

/**
 * On fetch hosts the source of a body that nobody reads on is told so after the same time. Not at once: what Node makes of a `FormData` or a `Blob`
 * has no patience with that, and goes on to put its bytes where they cannot go any more, which is an unhandled rejection. After that time it has
 * put all of them.
 */
export function abandon(body: Readable, clock: Clock): void {
  if (body.destroyed) return;
  body.on("error", () => {});
  clock.after(LINGER_MS, () => body.destroy());
}
