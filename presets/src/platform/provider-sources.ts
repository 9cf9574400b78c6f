import type { ConfigSetting } from "@portico/core";
import type { ProviderSource } from "@portico/plugins/model-proxy/management";
import type { ServedProvider } from "./provider-choice.ts";
import { settingSource } from "./setting-source.ts";

/** Where each provider is set, by its ID. */
export function providerSources(
  providers: readonly ServedProvider[],
  listing: readonly ConfigSetting[] = [],
): Readonly<Record<string, ProviderSource>> {
  const set = settingSource(listing, "providers");
  return Object.fromEntries(
    providers.map(({ id, origin, source }): [string, ProviderSource] => {
      if (origin !== "configured") return [id, { source: origin, foundAt: source }];
      return [id, { source: set === "default" ? undefined : set, setting: "providers", env: "PORTICO_PROVIDERS" }];
    }),
  );
}
