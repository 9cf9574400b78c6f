import type { IncomingMessage, ServerResponse } from "node:http";
import { faults } from "../error.ts";
import type { Surface } from "../surface.ts";
import type { Refusal } from "./answer.ts";
import { type HostRefusal, hostRule, hostsOf } from "./host-rule.ts";
import { refuseUpgrade } from "./refuse-upgrade.ts";
import { callerIdHeader } from "./request-id.ts";

/** The doors of a surface. They can be told to refuse a request. */
export interface Doors {
  fetch(request: Request, refusal?: Refusal): Promise<Response>;
  node(request: IncomingMessage, response: ServerResponse, refusal?: Refusal): void | Promise<void>;
}

/** `surface` for requests that name one of `hosts`, or this machine. Other requests are refused with the surface's own errors. */
export function hostBound(surface: Surface, hosts: readonly string[], doors: Doors): Surface {
  const refusalOf = hostRule(hosts);
  return {
    ...surface,
    forHosts: (others) => surface.forHosts(others),
    fetch: (request) => doors.fetch(request, refusalOfRequest(request, refusalOf)),
    node: (request, response) => doors.node(request, response, refusalOf(hostsOf(request))),
    upgrade(request, socket, head) {
      const refusal = refusalOf(hostsOf(request));
      if (!refusal) return surface.upgrade(request, socket, head);
      const { status, message } = faults[refusal.code];
      refuseUpgrade(socket, status, { error: refusal.code, message: refusal.message ?? message }, callerIdHeader(request));
      return true;
    },
  };
}

/**
 * The `Host` header and the host of the URL. A fetch host does not tell which of them the caller named, so both must be allowed.
 */
function refusalOfRequest(request: Request, refusalOf: ReturnType<typeof hostRule>): HostRefusal | undefined {
  const { host } = new URL(request.url);
  // Several `Host` headers arrive joined by a comma.
  const named = request.headers.get("host")?.split(",") ?? [host];
  return refusalOf(named) ?? (named[0] === host ? undefined : refusalOf([host]));
}
