import type { ports } from "@portico/core";
import { proxyErrors } from "./errors.ts";

/** The header with the instances that a call has passed. It is sent only to other Portico instances. */
export const TRAIL_HEADER = "x-portico-trail";

/** More entries than a call without a loop can have, even if each instance has several processes. */
const LONGEST_TRAIL = 8;

export interface Trail {
  /** The headers for the call to this provider. Throws provider_loop if the call has passed this app before. */
  extended(provider: Pick<ports.ModelProvider, "id">, came: string | undefined): Readonly<Record<string, string>>;
}

/**
 * Detects loops of providers: each call carries a trail of the instances that it passed. `mark` names this app. `instances` are the providers
 * that are Portico instances; other providers never receive a trail.
 */
export function createTrail(mark: string, instances: readonly string[]): Trail {
  const leadsOn = new Set(instances);
  return {
    extended({ id }, came) {
      const passed = came === undefined ? [] : came.split(",", LONGEST_TRAIL).map((each) => each.trim());
      if (passed.includes(mark) || passed.length === LONGEST_TRAIL) throw proxyErrors.provider_loop();
      return leadsOn.has(id) ? { [TRAIL_HEADER]: [...passed, mark].join(", ") } : NONE;
    },
  };
}

const NONE = {};
