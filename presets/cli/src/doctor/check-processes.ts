import { namesCluster } from "@portico/presets/settings/names-cluster";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed } from "../exit-codes.ts";
import { instanceStores } from "../instance-stores.ts";
import { DEFAULT_PRESET, loadPreset, PRESET_NAMES } from "../preset-table.ts";
import { planProcesses } from "../processes/plan-processes.ts";
import { programOf } from "../program.ts";
import { type Finding, fine, wrong } from "./finding.ts";

const ABOUT = "proxy.processes";

/** How many processes serve the model proxy of the preset that was started last, and whether they can. No findings for one process. */
export async function checkProcesses(settings: PlatformSettings): Promise<readonly Finding[]> {
  if (settings.proxy.processes === 1) return [];
  const last = namesCluster(settings) ? "cluster" : (instanceStores(settings)?.preset ?? DEFAULT_PRESET);
  try {
    const preset = programOf(settings)?.preset ?? (await loadPreset(PRESET_NAMES.includes(last) ? last : DEFAULT_PRESET));
    const count = planProcesses(preset, settings);
    return [fine(ABOUT, `${count} ${count === 1 ? "process serves" : "processes serve"} the model proxy`)];
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    return [wrong(ABOUT, error.message, "set proxy.processes to 1, or remove it")];
  }
}
