import { ports, type Scope } from "@portico/core";
import type { SharedPorts } from "./shared-ports.ts";

export interface LivingProcessesGiven extends SharedPorts {
  readonly serverInstanceId: string;
}

/**
 * Registers this process while it lives, and finds whether another one does: processes are registered as sockets are, and disappear in the
 * same way. The answer is undefined where that cannot be known now.
 */
export function registerProcess({ isShared, presence, serverInstanceId }: LivingProcessesGiven, scope: Scope) {
  if (isShared) {
    presence.hold(seatOf(serverInstanceId), {});
    scope.onClose(() => presence.release(seatOf(serverInstanceId)));
  }
  return async (other: string): Promise<boolean | undefined> => {
    if (other === serverInstanceId) return true;
    if (!isShared) return false;
    try {
      return (await presence.locate(seatOf(other))) !== undefined;
    } catch (error) {
      if (error instanceof ports.PresenceUnavailable) return undefined;
      throw error;
    }
  };
}

const seatOf = (serverInstanceId: string): string => `conversations-runs/${serverInstanceId}`;
