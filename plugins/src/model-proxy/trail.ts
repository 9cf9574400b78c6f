import type { ports } from "@portico/core";
import { proxyErrors } from "./errors.ts";

/** Names the instances that a call has passed. Only other instances are sent it. */
export const TRAIL_HEADER = "x-portico-trail";

/** More instances than a call passes that does not turn in a circle, whichever of their processes it met. */
const LONGEST_TRAIL = 8;

export interface Trail {
  /** The headers with which a call goes on to this provider. Throws provider_loop where the call was here before. */
  extended(provider: Pick<ports.ModelProvider, "id">, came: string | undefined): Readonly<Record<string, string>>;
}

/**
 * A loop of providers is found by the call that runs through it. `mark` names this app; `instances` are the providers that are Portico
 * instances: any other never learns of a trail.
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
