import { recordUsage } from "@portico/adapters/usage/records";
import type { Adapter } from "@portico/core";
import type { PlatformSettings } from "../settings/platform.ts";

/** The usage of an instance, in its records. */
export function instanceUsage({ usage: { timeZone }, prices }: Pick<PlatformSettings, "usage" | "prices">): Adapter {
  return recordUsage({ timeZone, prices });
}
