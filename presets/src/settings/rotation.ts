import { fromEnv, milliseconds } from "@portico/core";
import * as v from "valibot";

/** How changed secrets take effect while a service runs. */
export const rotationSchema = v.optional(
  v.strictObject({
    overlapMs: v.optional(
      fromEnv(
        "PORTICO_ROTATION_OVERLAP_MS",
        milliseconds(0),
        "How long a replaced or removed token stays valid. Its realtime connections, and links and grants made with it, end with it.",
      ),
      600_000,
    ),
    watchMs: v.optional(
      fromEnv(
        "PORTICO_ROTATION_WATCH_MS",
        milliseconds(0),
        "Interval of the checks whether a file with a secret has changed. A change takes effect after two checks. 0: only SIGHUP reads them again.",
      ),
      2_000,
    ),
  }),
  {},
);
