import { withoutEnd } from "@portico/core";
import { CLUSTER_SURFACES } from "../settings/cluster.ts";
import type { PlatformSettings } from "../settings/platform.ts";
import type { Listeners } from "../platform/platform-options.ts";

/** Clients of the proxy need the version in its URL (open points 1). */
const PROXY_PATH = "/v1";

/**
 * The addresses of an instance of several processes: the `publicUrl` of each surface, whichever process serves it. A surface without a
 * `publicUrl` has the address of this process, if it serves the surface.
 */
export function publicAddresses(settings: PlatformSettings, own: Listeners): Listeners {
  return () => {
    const here = own();
    return Object.fromEntries(
      CLUSTER_SURFACES.flatMap((surface) => {
        const url = publicUrlOf(surface, settings) ?? here[surface];
        return url === undefined ? [] : [[surface, url]];
      }),
    );
  };
}

function publicUrlOf(surface: (typeof CLUSTER_SURFACES)[number], settings: PlatformSettings): string | undefined {
  const { publicUrl } = settings[surface];
  if (publicUrl === undefined) return undefined;
  const url = withoutEnd(publicUrl, "/");
  return surface === "proxy" && !url.endsWith(PROXY_PATH) ? `${url}${PROXY_PATH}` : url;
}
