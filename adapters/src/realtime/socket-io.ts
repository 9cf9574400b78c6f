import { defineAdapter, isOriginAllowed, type OriginFacts, ports } from "@portico/core";
import { readLimits, type SocketLimits } from "./socket-limits.ts";
import { SocketPath } from "./socket-io/socket-path.ts";

/** Options of `socketIoRealtime`. */
export interface SocketIoOptions extends Partial<SocketLimits> {
  /**
   * Decides on a request by its `Origin` and `Host` headers. Default: allows requests without an origin, and the service's own
   * origin.
   */
  readonly allowOrigin?: (facts: OriginFacts) => boolean;
}

/**
 * Realtime for Socket.IO clients of protocol 5, over WebSocket and long polling. One Socket.IO server per served path, without
 * connection state recovery, because a recovered connection would skip `admit`. Needs a Node host; upgrades arrive by `attach` of
 * `@portico/core/node`. Opening throws a RangeError for an invalid limit.
 */
export const socketIoRealtime = defineAdapter({
  name: "realtime/socket-io",
  port: ports.realtime,
  needs: { nodePaths: ports.nodePaths, telemetry: ports.telemetry },
  open({ nodePaths, telemetry }, options: SocketIoOptions | undefined, scope): ports.Realtime {
    const { allowOrigin = isOriginAllowed, ...limits } = options ?? {};
    const door = { limits: readLimits(limits), allowOrigin: (facts: OriginFacts) => allowOrigin(facts) };
    const served = new Map<string, SocketPath<any>>();
    scope.onClose(() => Promise.all([...served.values()].map((path) => path.close())));
    return {
      serve(service) {
        const key = `${service.surface} ${service.path}`;
        if (served.has(key)) throw new Error(`Realtime path ${service.path} of surface "${service.surface}" is served twice`);
        const path = new SocketPath(service, { ...door, nodePaths, log: telemetry.log, freed: () => served.delete(key) });
        served.set(key, path);
        return path;
      },
    };
  },
});
