import type { ports } from "@portico/core";

/**
 * Passes on what other processes tell of a source's documents, as hints. Returns its end. It does not wait for a bus that is
 * unavailable: until the bus is back, periodic checks have to find the changes.
 */
export function followBus(bus: ports.Bus, topic: string, hint: (name?: string) => void): () => void {
  const subscription = bus.subscribe(topic, {
    received: (message) => hint((message as { readonly name: string }).name),
    missed: () => hint(),
  });
  void subscription.active.then((isActive) => isActive && hint());
  return () => subscription.close();
}
