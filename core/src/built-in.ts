import { randomFillSync, randomUUID } from "node:crypto";
import { createSystemClock } from "./clock/system-clock.ts";
import { describeCause } from "./describe-cause.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Telemetry } from "./ports/telemetry.ts";

/**
 * Fills `clock`, `ids` and `telemetry` in apps whose presets have no adapter for them, so that a small embedding needs none.
 * Telemetry writes errors to `console.error` and drops everything else.
 */
export const builtIn: { readonly clock: Clock; readonly ids: Ids; readonly telemetry: Telemetry } = {
  clock: createSystemClock(),
  ids: { uuid: () => randomUUID(), id: (prefix) => prefix + randomDigits() },
  telemetry: {
    log: {
      debug() {},
      info() {},
      warn() {},
      // Without telemetry, errors go to the place of Node's own warnings. Otherwise they would be lost.
      error: (message, fields, cause) => console.error(message, fields ?? {}, cause === undefined ? "" : describeCause(cause)),
    },
    begin: () => ({ note() {}, run: (work) => work(), end() {} }),
    work: () => ({ run: (work) => work(), end() {} }),
    traceparent: () => undefined,
    modelCall() {},
    gauge: () => () => {},
  },
};

const ID_BYTES = 16;
/** Every request has an ID: random bytes are generated for many IDs at a time. */
const pool = Buffer.alloc(256 * ID_BYTES);
let taken = pool.length;

function randomDigits(): string {
  if (taken === pool.length) {
    randomFillSync(pool);
    taken = 0;
  }
  return pool.toString("hex", taken, (taken += ID_BYTES));
}
