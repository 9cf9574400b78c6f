import { availableParallelism } from "node:os";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import { CommandFailed, EXIT } from "../exit-codes.ts";
import type { StartablePreset } from "../program.ts";

/** `auto` starts no more: further processes need memory, and one of them is enough for thousands of calls per second. */
const MOST_OF_AUTO = 16;

/** How many processes serve the model proxy. Throws CommandFailed (78) where several cannot. */
export function planProcesses(preset: Pick<StartablePreset<any>, "name" | "sharesProxy">, settings: PlatformSettings): number {
  const { processes } = settings.proxy;
  if (processes === 1 || preset.sharesProxy === "no proxy") return 1;
  const fault = faultOf(preset);
  if (processes === "auto" && (fault || availableParallelism() === 1)) return 1;
  const count = processes === "auto" ? Math.min(availableParallelism(), MOST_OF_AUTO) : processes;
  const problem = fault ?? unsharedOf(preset, settings, count);
  if (problem !== undefined) throw new CommandFailed(`proxy.processes: ${problem}`, EXIT.config);
  return count;
}

function faultOf({ name, sharesProxy }: Pick<StartablePreset<any>, "name" | "sharesProxy">): string | undefined {
  if (sharesProxy === undefined) return `only the presets local and proxy have several processes, and not ${name}`;
  // The system must distribute connections among the processes that listen at one address.
  if (process.platform !== "linux" || "Deno" in globalThis || "Bun" in globalThis)
    return 'several processes need Node.js on Linux: set 1, or "auto", which is 1 elsewhere';
  return undefined;
}

/** What the further processes do not have, or cannot divide. */
function unsharedOf(
  { sharesProxy }: Pick<StartablePreset<any>, "sharesProxy">,
  { agent, providers }: PlatformSettings,
  count: number,
): string | undefined {
  if (sharesProxy === "beside areas" && agent.asModels.userId !== undefined)
    return "agent.asModels.userId needs one process, because only the process of the agents can call them";
  const small = providers.find(({ enabled, concurrency }) => enabled && concurrency && concurrency.limit < count);
  if (small)
    return `${count} processes cannot share the ${small.concurrency?.limit} calls of provider "${small.id}" (concurrency.limit): set at most as many processes`;
  return undefined;
}

/** The settings of one of several processes: the calls at once of each provider are divided, so that all processes together keep its limit. */
export function settingsOfProcess<T extends PlatformSettings>(settings: T, number: number, count: number): T {
  const shareOf = (whole: number) => Math.floor(whole / count) + (number <= whole % count ? 1 : 0);
  const providers = settings.providers.map((provider) => {
    const { concurrency } = provider;
    if (!concurrency) return provider;
    return {
      ...provider,
      concurrency: { ...concurrency, limit: shareOf(concurrency.limit), queue: shareOf(concurrency.queue) },
    };
  });
  return { ...settings, providers };
}
