import { nearestWord } from "@portico/core";
import type { ListenAddress } from "@portico/presets/settings/listen";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { programOf, type StartablePreset } from "./program.ts";

/** The preset that the command line starts by default. */
export const DEFAULT_PRESET = "local";

/** All presets, one line each. */
const PRESETS: Readonly<
  Record<
    string,
    {
      readonly load: () => Promise<Pick<StartablePreset, "build"> & Partial<StartablePreset>>;
      /** The setting with the port of its only area's listener. */
      readonly portKey?: string;
    }
  >
> = {
  local: { load: async () => ({ build: (await import("@portico/presets/local")).local, sharesProxy: "beside areas" }) },
  proxy: {
    load: async () => ({ build: (await import("@portico/presets/proxy")).proxy, sharesProxy: "alone" }),
    portKey: "proxy.listen.port",
  },
  workflow: {
    load: async () => ({ build: (await import("@portico/presets/workflow")).workflow, sharesProxy: "no proxy" }),
    portKey: "workflow.listen.port",
  },
  agent: {
    load: async () => ({ build: (await import("@portico/presets/agent")).agent, sharesProxy: "no proxy" }),
    portKey: "agent.listen.port",
  },
  cluster: { load: async () => (await import("./start-cluster.ts")).startCluster },
};

export const PRESET_NAMES = Object.keys(PRESETS);

/** Throws CommandFailed (64) for an unknown preset. */
export async function loadPreset(name: string): Promise<StartablePreset> {
  const entry = Object.hasOwn(PRESETS, name) ? PRESETS[name] : undefined;
  if (!entry) {
    const nearest = nearestWord(name, PRESET_NAMES);
    throw new CommandFailed(
      `There is no preset "${name}"${nearest ? `; did you mean "${nearest}"?` : `: ${PRESET_NAMES.join(", ")}`}`,
      EXIT.usage,
    );
  }
  return { name, addresses: platformAddresses, ...(await entry.load()) };
}

/** The setting that `--port` sets for a preset. Throws CommandFailed (64) if the preset has several areas. */
export function portKeyOf(preset: string): string {
  const key = PRESETS[preset]?.portKey;
  if (key !== undefined) return key;
  const single = Object.keys(PRESETS).filter((name) => PRESETS[name]?.portKey !== undefined);
  throw new CommandFailed(
    `--port is for presets with one area (${single.join(", ")}): the preset ${preset} has a listener for each area, such as proxy.listen.port`,
    EXIT.usage,
  );
}

/** Where the surfaces listen: those of the program that was called, or of a platform. */
export function addressesOf(settings: PlatformSettings): Readonly<Record<string, ListenAddress>> {
  return programOf(settings)?.preset.addresses(settings) ?? platformAddresses(settings);
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
