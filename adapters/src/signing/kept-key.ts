import type { ports, Secret } from "@portico/core";

/** Name under which the key is stored. */
const KEY = "signingKey";

/** The instance's own key, created at the first use and stored with the port `secrets`: for `hmacSigning({ key: keptKey })`. */
export async function keptKey(secrets: ports.Secrets): Promise<Secret> {
  return (await secrets.keep(KEY, () => secrets.create(""))).value;
}
