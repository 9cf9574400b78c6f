import { fromEnv } from "@portico/core";
import * as v from "valibot";

/** Every area's own address: this machine alone, and a port that the system assigns (open points 1). */
export function listenSchema(area: string) {
  const host = v.pipe(
    v.string(),
    v.regex(/^[^\s/@]+$/, "a host name or an IP address"),
    v.description(`Address that the ${area.toLowerCase()} listener binds.`),
  );
  const port = v.pipe(
    v.number(),
    v.integer(),
    v.minValue(0),
    v.maxValue(65535),
    v.description(`Port of the ${area.toLowerCase()} listener; 0 lets the system choose.`),
  );
  return v.optional(
    v.strictObject({
      host: v.optional(fromEnv(`PORTICO_${area}_HOST`, host), "127.0.0.1"),
      port: v.optional(fromEnv(`PORTICO_${area}_PORT`, port), 0),
    }),
    {},
  );
}

/** Where one surface listens. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}
