import { isNetwork } from "@portico/adapters/audit/records";
import { fromEnv, keeping } from "@portico/core";
import * as v from "valibot";

/** The record of who changed what. */
export const auditSchema = v.optional(
  v.strictObject({
    keep: v.optional(fromEnv("PORTICO_AUDIT_KEEP", keeping(), "How long entries of the audit are kept."), "400d"),
    trustedProxies: v.optional(
      fromEnv(
        "PORTICO_AUDIT_TRUSTED_PROXIES",
        v.array(v.pipe(v.string(), v.check(isNetwork, "an address or a network, such as 10.0.0.0/8"))),
        "Addresses and networks of the reverse proxies whose `X-Forwarded-For` the audit believes. Otherwise it records the address of the connection.",
      ),
      [],
    ),
  }),
  {},
);
