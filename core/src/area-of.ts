import { pluginConfig } from "./brought-adapters.ts";
import type { Plugin } from "./plugin.ts";
import type { Area } from "./ports/areas.ts";

/**
 * The public description of a plugin. Nothing is opened for it, because contracts are data. Throws a sentence if the plugin does
 * not accept its options.
 */
export function areaOf(plugin: Plugin): Area {
  const { name, spec } = plugin;
  return {
    name,
    summary: spec.summary,
    contract: spec.contract,
    channels: spec.channels ?? {},
    security: spec.security ?? {},
    capabilities: spec.capabilities?.(pluginConfig(plugin)) ?? [],
  };
}
