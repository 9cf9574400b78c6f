import * as v from "valibot";
import type { Adapter } from "./adapter.ts";
import { optionProblems } from "./config.ts";
import type { Plugin } from "./plugin.ts";

/** A plugin's options as its schema parses them. Throws a line for each invalid option, as `loadConfig` does for settings. */
export function pluginConfig({ spec, options }: Plugin): unknown {
  const config = v.safeParse(spec.config, options);
  if (config.success) return config.output;
  const lines = optionProblems(spec.config, options, config.issues).map((line) => `  ${line}`);
  throw new Error(`Plugin "${spec.name}" was given options that it does not take:\n${lines.join("\n")}`);
}

/** The adapters that plugins bring along, in order of the plugins. Throws as `pluginConfig` does. */
export function broughtBy(plugins: readonly Plugin[]): readonly Adapter[] {
  return plugins.flatMap((plugin) => {
    const brought = plugin.spec.provides?.(pluginConfig(plugin)) ?? [];
    return brought.map((adapter) => ({ ...adapter, broughtBy: plugin.name }));
  });
}

/** Whether `adapter` replaces `other`: a single port has one adapter, and a name identifies one adapter. */
export function replaces(adapter: Adapter, other: Adapter): boolean {
  return adapter.name === other.name || (!other.spec.port.many && adapter.spec.port.id === other.spec.port.id);
}
