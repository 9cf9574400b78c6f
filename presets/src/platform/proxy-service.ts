import type { Plugin } from "@portico/core";
import { modelProxy } from "@portico/plugins/model-proxy";
import { serviceTokens } from "./own-token.ts";
import type { PlatformOptions } from "./platform-options.ts";
import { isInstance } from "./provider-choice.ts";

/** Everything of surface `proxy`, which has exactly three paths (specification 4.1). */
export function proxyService({ settings, providers }: PlatformOptions): Plugin {
  return modelProxy({
    // Large uploads are buffered in the data directory, because the system's temporary folder is often in memory.
    spoolDir: settings.dataDir,
    ownTokens: (secrets) => serviceTokens(settings, secrets),
    instances: providers.filter(isInstance).map(({ id }) => id),
  });
}
