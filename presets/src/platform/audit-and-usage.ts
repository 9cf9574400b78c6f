import { recordAudit } from "@portico/adapters/audit/records";
import type { EndedRequests } from "@portico/adapters/telemetry/ended-requests";
import { recordUsage } from "@portico/adapters/usage/records";
import type { Adapter } from "@portico/core";
import type { PlatformSettings } from "../settings/platform.ts";
import { pricesOf } from "./prices-of.ts";

/** The audit of an instance, in its records. */
export function instanceAudit({ audit }: Pick<PlatformSettings, "audit">): Adapter {
  return recordAudit(audit);
}

/** The usage of an instance, in its records. With `requests`, also counts the requests of the process. */
export function instanceUsage(
  settings: Pick<PlatformSettings, "usage" | "prices" | "providers">,
  requests?: EndedRequests,
): Adapter {
  return recordUsage({ ...settings.usage, prices: pricesOf(settings), requests });
}
