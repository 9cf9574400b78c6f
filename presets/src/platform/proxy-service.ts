import { type Plugin, type ports, selectLive } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { serviceTokens } from "./own-token.ts";
import type { PlatformOptions } from "./platform-options.ts";
import { isInstance } from "./provider-choice.ts";
import { type RotatingSettings, rotationOf } from "../settings/rotating-settings.ts";

/** Everything of surface `proxy`, which has exactly three paths (specification 4.1). */
export function proxyService(options: PlatformOptions): Plugin {
  const { settings, providers } = options;
  return modelProxy({
    // Large uploads are buffered in the data directory, because the system's temporary folder is often in memory.
    spoolDir: settings.dataDir,
    ownTokens: readTokens(settings),
    ownTokenRotation: selectLive(rotationOf(options), readTokens),
    instances: providers.filter(isInstance).map(({ id }) => id),
  });
}

function readTokens(settings: RotatingSettings) {
  return (secrets: ports.Secrets) => serviceTokens(settings, secrets);
}
