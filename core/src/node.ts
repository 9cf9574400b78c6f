import type { NodeListener, Surface } from "./http/surface.ts";

export { type Attachment, attach } from "./http/attach.ts";
export { refuseUpgrade } from "./http/refuse-upgrade.ts";
export { callerIdHeader } from "./http/answer-headers.ts";

/**
 * A surface as a classic `(request, response)` listener, for `node:http`, Express, Connect, Fastify and listhen. Routes that move bytes
 * run on the Node streams themselves.
 */
export function toNodeHandler(surface: Pick<Surface, "node">): NodeListener {
  return surface.node;
}
