import { nearestWord, type Preset } from "@portico/core";
import type { PlatformOptions } from "../platform/platform-options.ts";
import type { ListenAddress } from "../settings/listen.ts";
import type { PlatformSettings } from "../settings/platform.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/** A preset that can be run as a service. */
export interface StartablePreset<T extends PlatformSettings = PlatformSettings> {
  readonly name: string;
  readonly build: (options: PlatformOptions<T>) => Preset;
  /** Where its surfaces listen. A surface without an entry listens only on this machine, on a port that the system chooses. */
  readonly addresses: (settings: T) => Readonly<Record<string, ListenAddress>>;
}

/** The preset that the command line starts by default. */
export const DEFAULT_PRESET = "local";

/** All presets, one line each. The specification names the presets without `load`; they are not built yet. */
const PRESETS: Readonly<Record<string, { readonly load?: () => Promise<(options: PlatformOptions) => Preset> }>> = {
  local: { load: async () => (await import("../local/preset.ts")).local },
  proxy: { load: async () => (await import("../proxy/preset.ts")).proxy },
  workflow: { load: async () => (await import("../workflow/preset.ts")).workflow },
  agent: { load: async () => (await import("../agent/preset.ts")).agent },
  cluster: {},
};

export const PRESET_NAMES = Object.keys(PRESETS);

/** Throws CommandFailed (64) for an unknown preset, or a preset that is not built yet. */
export async function loadPreset(name: string): Promise<StartablePreset> {
  const entry = Object.hasOwn(PRESETS, name) ? PRESETS[name] : undefined;
  if (!entry) {
    const nearest = nearestWord(name, PRESET_NAMES);
    throw new CommandFailed(
      `There is no preset "${name}"${nearest ? `; did you mean "${nearest}"?` : `: ${PRESET_NAMES.join(", ")}`}`,
      EXIT.usage,
    );
  }
  if (!entry.load) {
    const built = PRESET_NAMES.filter((each) => PRESETS[each]?.load);
    throw new CommandFailed(`The preset "${name}" is not built yet. Available presets: ${built.join(", ")}`, EXIT.usage);
  }
  return { name, build: await entry.load(), addresses: platformAddresses };
}

/** Where the surfaces of a platform listen. */
export function platformAddresses({ proxy, agent, workflow, probes }: PlatformSettings): Readonly<Record<string, ListenAddress>> {
  const addressOf = ({ listen, publicUrl }: Pick<PlatformSettings["proxy"], "listen" | "publicUrl">) => ({
    ...listen,
    publicUrl,
  });
  return {
    proxy: addressOf(proxy),
    agent: addressOf(agent),
    workflow: addressOf(workflow),
    ...(probes?.listen && { probes: probes.listen }),
  };
}
