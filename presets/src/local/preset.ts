import { definePreset, probes, type Secret } from "@portico/core";
import { credentialTool } from "@portico/plugins/model-proxy/credential-tool";
import { safeTokenManagement } from "@portico/plugins/model-proxy/management";
import { instanceIdentity } from "../platform/instance-identity.ts";
import type { PlatformOptions } from "../platform/platform-options.ts";
import type { ServedProvider } from "../platform/provider-choice.ts";
import { proxy } from "../proxy/preset.ts";

export { chooseProviders } from "../platform/provider-choice.ts";
export { type LocalConfig, localSchema } from "./config.ts";

/** Everything for one person on one machine: surfaces `proxy` and `agent`. */
export const local = definePreset((options: PlatformOptions) => ({
  name: "local",
  extends: proxy(options),
  adapters: [
    instanceIdentity({ tokens: options.settings.agent.tokens, onMade: options.onTokenMade }),
    credentialTool({ allowRawCredentials: options.settings.allowRawCredentials, credentials: credentialsOf(options.providers) }),
  ],
  // Probes come last, so that an unknown path is answered in the agent service's words.
  plugins: [safeTokenManagement({}), probes({ surface: "agent", isReady: options.isReady })],
}));

function credentialsOf(providers: readonly ServedProvider[]): Record<string, Secret> {
  return Object.fromEntries(providers.flatMap(({ id, credential }) => (credential ? [[id, credential]] : [])));
}
