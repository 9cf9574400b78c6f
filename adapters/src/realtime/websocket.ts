import { defineAdapter, isOriginAllowed, type OriginFacts, ports } from "@portico/core";
import { readLimits, type SocketLimits } from "./socket-limits.ts";
import { WebSocketService } from "./websocket/web-socket-service.ts";

/** Options of `webSocketRealtime`. */
export interface WebSocketOptions extends Partial<SocketLimits> {
  /**
   * Decides on a request by its `Origin` and `Host` headers. Default: allows requests without an origin, and the service's own
   * origin.
   */
  readonly allowOrigin?: (facts: OriginFacts) => boolean;
}

/**
 * Realtime for plain WebSocket clients, in JSON frames (`docs/websocket-protocol.md`). Served by crossws: on Node where `attach` of
 * `@portico/core/node` hands over upgrades, and on hosts of fetch functions that run crossws. Opening throws a RangeError for an invalid limit.
 */
export const webSocketRealtime = defineAdapter({
  name: "realtime/websocket",
  port: ports.realtime,
  needs: { nodePaths: ports.nodePaths, webSocketPaths: ports.webSocketPaths, telemetry: ports.telemetry },
  open({ nodePaths, webSocketPaths, telemetry }, options: WebSocketOptions | undefined, scope): ports.Realtime {
    const { allowOrigin = isOriginAllowed, ...given } = options ?? {};
    const limits = readLimits(given);
    const served = new Map<string, WebSocketService<any>>();
    scope.onClose(() => Promise.all([...served.values()].map((path) => path.close())));
    return {
      serve(service) {
        const key = `${service.surface} ${service.path}`;
        if (served.has(key)) throw new Error(`Realtime path ${service.path} of surface "${service.surface}" is served twice`);
        const path = new WebSocketService(service, {
          limits,
          allowOrigin: (facts) => allowOrigin(facts),
          nodePaths,
          webSocketPaths,
          log: telemetry.log,
          freed: () => served.delete(key),
        });
        served.set(key, path);
        return path;
      },
    };
  },
});
