import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { dataDirectory } from "../data-directory.ts";

/**
 * Makes this process trust the certificate of the instance's service, in addition to the default ones: a certificate that the
 * instance created itself is not signed by an authority. For commands, which end after a few calls.
 */
export function trustOwnCertificate({ dataDir, https }: Pick<PlatformSettings, "dataDir" | "https">): void {
  try {
    const certificate = readFileSync(https.cert ?? dataDirectory(dataDir).certificate, "utf8");
    setDefaultCACertificates([...getCACertificates("default"), certificate]);
  } catch {
    // Without the file, a call with an untrusted certificate fails: "cannot be reached".
  }
}
