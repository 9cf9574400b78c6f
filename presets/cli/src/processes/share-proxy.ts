import type { ports } from "@portico/core";
import type { PlatformOptions } from "@portico/presets/local";
import type { ServedProvider } from "@portico/presets/platform/provider-choice";
import type { RecentLines } from "@portico/presets/platform/proxy-process";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { ConfigFile } from "../config-file.ts";
import { EXIT } from "../exit-codes.ts";
import type { StartablePreset } from "../program.ts";
import type { StopRequest } from "../stop-request.ts";
import type { ProcessStart } from "./messages.ts";
import { planProcesses, settingsOfProcess } from "./plan-processes.ts";
import { ProxyProcesses } from "./proxy-processes.ts";

/** The model proxy of an instance that is served by several processes. The instance is the first of them. */
export interface SharedProxy<T extends PlatformSettings> {
  readonly count: number;
  /** The settings of the instance's own process. */
  readonly settings: T;
  /** For the preset of the instance. */
  readonly options: NonNullable<PlatformOptions["proxyProcesses"]>;
  /** Undefined before `open`. */
  readonly processes: ProxyProcesses | undefined;
  /** Whether all processes listen, or one that ended is being replaced. */
  readonly isOpen: boolean;
  /** Starts the further processes. Resolves when all listen. Throws CommandFailed. */
  open(instance: OpenInstance): Promise<void>;
}

/** An instance that listens. */
interface OpenInstance extends Pick<ProcessStart, "urls" | "hasConsole"> {
  readonly configFile: ConfigFile | undefined;
  readonly providers: readonly ServedProvider[];
  readonly log: ports.Log;
  readonly stop: StopRequest;
}

/** Undefined if one process serves the proxy. Throws CommandFailed (78) for settings that several processes cannot have. */
export function shareProxy<T extends PlatformSettings>(
  preset: Pick<StartablePreset<T>, "name" | "sharesProxy">,
  settings: T,
): SharedProxy<T> | undefined {
  const count = planProcesses(preset, settings);
  if (count === 1) return undefined;
  let processes: ProxyProcesses | undefined;
  let recentLines: RecentLines | undefined;
  let isOpen = false;
  return {
    count,
    settings: settingsOfProcess(settings, 1, count),
    options: {
      own: 1,
      snapshots: async () => (await processes?.snapshots()) ?? [],
      onLines: (lines) => (recentLines = lines),
    },
    get processes() {
      return processes;
    },
    get isOpen() {
      return isOpen;
    },
    async open({ urls, hasConsole, configFile, providers, log, stop }) {
      const found = providers.filter(({ origin }) => origin === "found").map(({ id }) => id);
      const start = {
        count,
        port: Number(new URL(urls["proxy"]!).port),
        urls,
        hasConsole,
        configFile: asMessage(configFile),
        found,
      };
      processes = new ProxyProcesses({ start, log, recentLines, onCrashLoop: () => stop.request(EXIT.internal) });
      await processes.open(stop.signal);
      isOpen = true;
    },
  };
}

/** Undefined for a configuration file with code, which no message can contain. */
function asMessage(file: ConfigFile | undefined): ConfigFile | undefined {
  try {
    return structuredClone(file);
  } catch {
    return undefined;
  }
}
