import { defineAdapter, ports } from "@portico/core";
import { checkTopic, toMessageText } from "./bus-message.ts";
import { Topics } from "./topics.ts";

/** Apps of one process that share a hub hear each other, as processes of one instance do. */
export type BusHub = Set<Topics>;

/** Options of `memoryBus`. */
export interface MemoryBusOptions {
  /** Default: a new hub, so that the app hears only itself. */
  readonly hub?: BusHub;
}

/** A hub that no app uses yet. */
export function createBusHub(): BusHub {
  return new Set();
}

/** A bus within one process: for instances with a single process, and for tests. It loses only messages that are too large. */
export const memoryBus = defineAdapter({
  name: "bus/memory",
  port: ports.bus,
  needs: { telemetry: ports.telemetry },
  open({ telemetry }, { hub = createBusHub() }: MemoryBusOptions, scope): ports.Bus {
    const own = new Topics(telemetry.log);
    hub.add(own);
    scope.onClose(() => {
      hub.delete(own);
      own.close();
    });
    return {
      publish(topic, message, { toOthers = false } = {}) {
        const name = checkTopic(topic);
        if (!hub.has(own)) return;
        const receivers = [...hub].filter((topics) => topics.has(name) && !(toOthers && topics === own));
        // Most topics have no receiver: then the message costs nothing.
        if (receivers.length === 0) return;
        const text = toMessageText(message);
        for (const topics of receivers) topics.tell(name, text);
      },
      subscribe(topic, listener) {
        const name = checkTopic(topic);
        if (!hub.has(own)) return { active: Promise.resolve(false), close() {} };
        const seat = own.add(name, listener);
        return { active: Promise.resolve(true), close: () => own.remove(seat) };
      },
    };
  },
});
