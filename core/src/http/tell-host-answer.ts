import type { ServerResponse } from "node:http";
import { CALLER_LEFT } from "./door.ts";
import type { SurfaceServices } from "./pipeline.ts";
import type { RequestIds } from "./request-id.ts";
import type { SurfaceEvent } from "./surface-event.ts";

/**
 * Tell of a request that middleware or a route of the host has answered. `answer` tells of all others. Only now is it known which of them
 * has answered, so that the beginning is told late.
 */
export function tellHostAnswer(
  surface: string,
  event: SurfaceEvent,
  status: number,
  ids: RequestIds,
  { telemetry }: Pick<SurfaceServices, "telemetry">,
): void {
  const { req, context, arrivedAt, target } = event;
  const trace = telemetry.begin({
    id: ids.own,
    callerRequestId: ids.ofCaller,
    area: surface,
    route: "host",
    method: req.method,
    path: context.matchedRoute?.route ?? "",
    scheme: target.protocol === "https:" ? "https" : "http",
    header: (name) => req.headers.get(name) ?? undefined,
    beganMsAgo: performance.now() - arrivedAt,
  });
  trace.end({ status });
}

/** Calls `over` with the sent status when Node has sent an answer, or has lost its reader. */
export function onResponseOver(response: ServerResponse, over: (status: number) => void): void {
  const end = () => over(response.headersSent ? response.statusCode : CALLER_LEFT);
  if (response.closed) end();
  else response.once("close", end);
}
