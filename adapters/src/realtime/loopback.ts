import { defineAdapter, ports } from "@portico/core";
import { type LoopbackClient, LoopbackPath } from "./loopback/loopback-path.ts";

export type { LoopbackClient } from "./loopback/loopback-path.ts";

/**
 * Realtime without a network: the service uses the port, clients use `connect`. For tests, and for turns of agents without a
 * connected client.
 */
export interface Loopback extends ports.Realtime {
  /**
   * Connect as a client, with its authentication object. Rejects with ConnectionRefused when the service refuses, also with code
   * `not_served` without a service. Without `surface` and `path`, it connects to the only served path. The client leaves when
   * `signal` aborts, also before the service has decided. `last` is the `place` of an earlier connection of the client.
   */
  connect(
    hello: unknown,
    at?: { readonly surface?: string; readonly path?: string; readonly signal?: AbortSignal; readonly last?: string },
  ): Promise<LoopbackClient>;
}

/** Creates a loopback for tests that need both sides. */
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
      return path.connect(hello, at.signal, at.last);
    },
  };
}

/** Fills the realtime port in process. Pass the result of `createLoopback()` to connect clients. */
export const loopbackRealtime = defineAdapter({
  name: "realtime/loopback",
  port: ports.realtime,
  needs: {},
  open: (_given, options: { readonly loopback?: Loopback } | undefined): ports.Realtime => options?.loopback ?? createLoopback(),
});
