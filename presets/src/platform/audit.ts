import { recordAudit } from "@portico/adapters/audit/records";
import type { Adapter } from "@portico/core";
import { keepingMs } from "../settings/keeping.ts";
import type { PlatformSettings } from "../settings/platform.ts";

/** The audit of an instance, in its records. */
export function instanceAudit({ audit: { keep, trustedProxies } }: Pick<PlatformSettings, "audit">): Adapter {
  return recordAudit({ keepMs: keepingMs(keep), trustedProxies });
}
