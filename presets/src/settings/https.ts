import { filePath, fromEnv } from "@portico/core";
import * as v from "valibot";

/** Whether the listeners use HTTPS, and which certificate. */
export const httpsSchema = v.optional(
  v.strictObject({
    enabled: v.optional(
      fromEnv(
        "PORTICO_HTTPS",
        v.boolean(),
        "Whether all listeners use HTTPS. Without `https.cert`, the instance creates a self-signed certificate.",
      ),
      false,
    ),
    cert: v.optional(
      fromEnv("PORTICO_HTTPS_CERT", filePath(), "Certificate of the listeners, with its chain, as a PEM file. Enables HTTPS."),
    ),
    key: v.optional(fromEnv("PORTICO_HTTPS_KEY", filePath(), "Private key of `https.cert`, as a PEM file without a passphrase.")),
  }),
  {},
);
