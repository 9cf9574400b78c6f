import { userInfo } from "node:os";
import type { ports } from "@portico/core";

/** Who uses the command line, for the audit. */
export function commandActor(): ports.AuditActor {
  try {
    return { role: "command", userId: userInfo().username };
  } catch {
    // In a container, a process may run under an id without a name.
    return { role: "command" };
  }
}
