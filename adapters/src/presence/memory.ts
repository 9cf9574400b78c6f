import { defineAdapter, ports } from "@portico/core";
import { toFactsText } from "./facts-text.ts";

/** Where each socket is. Apps of one process that share it find each other's sockets, as processes of one instance do. */
export type SocketRegistry = Map<string, { readonly process: string; readonly facts: string }>;

/** Options of `memoryPresence`. */
export interface MemoryPresenceOptions {
  /** Default: a new registry, so that the app finds only its own sockets. */
  readonly registry?: SocketRegistry;
}

/** A registry without entries. */
export function createSocketRegistry(): SocketRegistry {
  return new Map();
}

/** A registry of sockets within one process: for instances with a single process, and for tests. */
export const memoryPresence = defineAdapter({
  name: "presence/memory",
  port: ports.presence,
  needs: { ids: ports.ids },
  open({ ids }, { registry = createSocketRegistry() }: MemoryPresenceOptions, scope): ports.Presence {
    const process = ids.id("proc_");
    let isClosed = false;
    const release = (socketId: string): void => {
      if (registry.get(socketId)?.process === process) registry.delete(socketId);
    };
    scope.onClose(() => {
      isClosed = true;
      for (const socketId of registry.keys()) release(socketId);
    });
    return {
      process,
      release,
      hold(socketId, facts) {
        const entry = { process, facts: toFactsText(facts) };
        if (!isClosed) registry.set(socketId, entry);
      },
      async locate(socketId) {
        if (isClosed) throw new ports.PresenceUnavailable("The registry of sockets is closed");
        const found = registry.get(socketId);
        return found && { process: found.process, facts: JSON.parse(found.facts) };
      },
    };
  },
});
