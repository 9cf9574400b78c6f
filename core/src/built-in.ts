import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { describeCause } from "./describe-cause.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Telemetry } from "./ports/telemetry.ts";

/**
 * What an app measures and names its requests with where its preset fills neither `clock`, `ids` nor `telemetry`, so that an embedding
 * of ten lines needs none of them. Plugins that need these ports still need adapters.
 */
export const builtIn: { readonly clock: Clock; readonly ids: Ids; readonly telemetry: Telemetry } = {
  clock: {
    now: () => Date.now(),
    after(ms, run) {
      const timer = setTimeout(run, ms).unref();
      return { refresh: () => void timer.refresh(), cancel: () => clearTimeout(timer) };
    },
    sleep: (ms, signal) => sleep(ms, undefined, { ref: false, ...(signal && { signal }) }),
  },
  ids: { uuid: () => randomUUID(), id: (prefix) => prefix + randomUUID().replaceAll("-", "") },
  telemetry: {
    log: {
      debug() {},
      info() {},
      warn() {},
      // Errors nobody could see would be lost: without telemetry they go where Node's own warnings go.
      error: (message, fields, cause) => console.error(message, fields ?? {}, cause === undefined ? "" : describeCause(cause)),
    },
    begin: () => ({ note() {}, end() {} }),
  },
};
