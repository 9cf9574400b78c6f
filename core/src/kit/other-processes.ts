import type { Scope } from "../grammar/scope.ts";
import type { Bus } from "../ports/bus.ts";
import type { Engine } from "../ports/engine.ts";
import { type Presence, PresenceUnavailable } from "../ports/presence.ts";

/** The ports over which the processes of one instance reach each other. */
export interface SharedPorts {
  /** Whether there may be other processes. */
  readonly isShared: boolean;
  readonly bus: Bus;
  readonly presence: Presence;
}

/** The ports of processes that share an engine. In an instance of one process, ports without others. Throws TypeError if one is missing. */
export function sharedPorts({
  engine,
  bus,
  presence,
}: {
  readonly engine: Engine;
  readonly bus: Bus | undefined;
  readonly presence: Presence | undefined;
}): SharedPorts {
  if (!engine.isShared) return { isShared: false, bus: noOthers, presence: noSocketsElsewhere };
  if (!bus || !presence) throw new TypeError("Processes that share an engine need adapters for the ports bus and presence");
  return { isShared: true, bus, presence };
}

const noOthers: Bus = {
  publish() {},
  subscribe: () => ({ active: Promise.resolve(true), close() {} }),
};

const noSocketsElsewhere: Presence = {
  process: "",
  hold() {},
  release() {},
  locate: async () => undefined,
};

/**
 * Registers this process for an area while it lives. Returns a function that says whether another process lives: processes are registered as
 * sockets are, and disappear in the same way. It answers undefined where that cannot be known now.
 */
export function registerProcess(
  { isShared, presence }: SharedPorts,
  { area, id }: { readonly area: string; readonly id: string },
  scope: Scope,
): (other: string) => Promise<boolean | undefined> {
  const keyOf = (process: string): string => `${area}/${process}`;
  if (isShared) {
    presence.hold(keyOf(id), {});
    scope.onClose(() => presence.release(keyOf(id)));
  }
  return async (other) => {
    if (other === id) return true;
    if (!isShared) return false;
    try {
      return (await presence.locate(keyOf(other))) !== undefined;
    } catch (error) {
      if (error instanceof PresenceUnavailable) return undefined;
      throw error;
    }
  };
}
