import { ports, type Scope } from "@portico/core";

/** By what processes of one instance reach each other. */
export interface SharedPorts {
  /** Whether there may be others. */
  readonly isShared: boolean;
  readonly bus: ports.Bus;
  readonly presence: ports.Presence;
}

/** The ports of processes that share an engine. In an instance of one process, ports without others. Throws TypeError if one is missing. */
export function sharedPorts({
  engine,
  bus,
  presence,
}: {
  readonly engine: ports.Engine;
  readonly bus: ports.Bus | undefined;
  readonly presence: ports.Presence | undefined;
}): SharedPorts {
  if (!engine.isShared) return { isShared: false, bus: noOthers, presence: noSocketsElsewhere };
  if (!bus || !presence) throw new TypeError("Processes that share an engine need adapters for the ports bus and presence");
  return { isShared: true, bus, presence };
}

const noOthers: ports.Bus = {
  publish() {},
  subscribe: () => ({ active: Promise.resolve(true), close() {} }),
};

const noSocketsElsewhere: ports.Presence = {
  process: "",
  hold() {},
  release() {},
  locate: async () => undefined,
};

export interface LivingProcessesGiven extends SharedPorts {
  readonly serverInstanceId: string;
}

/**
 * Registers this process while it lives, and finds whether another one does: processes are registered as sockets are, and disappear in the
 * same way. The answer is undefined where that cannot be known now.
 */
export function registerProcess({ isShared, presence, serverInstanceId }: LivingProcessesGiven, scope: Scope) {
  if (isShared) {
    presence.hold(presenceKeyOf(serverInstanceId), {});
    scope.onClose(() => presence.release(presenceKeyOf(serverInstanceId)));
  }
  return async (other: string): Promise<boolean | undefined> => {
    if (other === serverInstanceId) return true;
    if (!isShared) return false;
    try {
      return (await presence.locate(presenceKeyOf(other))) !== undefined;
    } catch (error) {
      if (error instanceof ports.PresenceUnavailable) return undefined;
      throw error;
    }
  };
}

const presenceKeyOf = (serverInstanceId: string): string => `conversations-runs/${serverInstanceId}`;
