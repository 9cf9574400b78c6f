import { defineAdapter, ports } from "@portico/core";
import { type LoopbackClient, LoopbackPath } from "./loopback/loopback-path.ts";

export type { LoopbackClient } from "./loopback/loopback-path.ts";

/**
 * Realtime without a network: the service's side is the port, the clients' side is `connect`. For tests, and for turns of agents that no
 * client watches.
 */
export interface Loopback extends ports.Realtime {
  /**
   * Connect as a client does, with its authentication object. Rejects with ConnectionRefused when the service refuses, also with code
   * `not_served` where nothing listens. Without `surface` and `path` the only served path is meant. The client leaves when `signal`
   * aborts, also while the service still decides.
   */
  connect(
    hello: unknown,
    at?: { readonly surface?: string; readonly path?: string; readonly signal?: AbortSignal },
  ): Promise<LoopbackClient>;
}

/** A loopback of one's own, for tests that need both sides. */
export function createLoopback(): Loopback {
  const served = new Map<string, LoopbackPath<any>>();
  return {
    serve(service) {
      const key = `${service.surface} ${service.path}`;
      if (served.has(key)) throw new Error(`Realtime path ${service.path} of surface "${service.surface}" is served twice`);
      const path = new LoopbackPath(service, () => served.delete(key));
      served.set(key, path);
      return path;
    },
    async connect(hello, at = {}) {
      const paths = [...served.values()].filter(
        ({ service }) => (at.surface ?? service.surface) === service.surface && (at.path ?? service.path) === service.path,
      );
      if (paths.length > 1) throw new Error("Several realtime paths are served: say which one is meant");
      const [path] = paths;
      if (!path) throw new ports.ConnectionRefused("not_served", "Nothing listens here");
      return path.connect(hello, at.signal);
    },
  };
}

/** Fills the realtime port in process; give it a `createLoopback()` of your own to connect clients. */
export const loopbackRealtime = defineAdapter({
  name: "realtime/loopback",
  port: ports.realtime,
  needs: {},
  open: (_given, options: { readonly loopback?: Loopback } | undefined): ports.Realtime => options?.loopback ?? createLoopback(),
});
