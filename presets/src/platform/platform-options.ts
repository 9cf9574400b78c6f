import type { ReadSnapshots } from "@portico/adapters/telemetry/prometheus";
import type { RecentLines } from "@portico/adapters/telemetry/recent-lines";
import type { ConfigSetting, Live, Secret } from "@portico/core";
import type { Listeners } from "@portico/operator/listeners";
import type { PlatformSettings } from "../settings/platform.ts";
import type { TokenOf } from "./own-token.ts";
import type { ServedProvider } from "./provider-choice.ts";
import type { RotatingSettings } from "../settings/rotating-settings.ts";

export type { Listeners, RotatingSettings };

/** What a process knows of the other processes that serve the same model proxy. */
export interface ProxyProcesses {
  /** The number of this process, from 1 on. */
  readonly own: number;
  /** What the other processes measured. Undefined in a process whose measurements another one shows. */
  readonly snapshots?: ReadSnapshots | undefined;
  /** Called once with the kept log lines of this process. */
  readonly onLines?: ((lines: RecentLines) => void) | undefined;
}

/** The input of a platform preset. `T` has the keys that a custom preset adds to the platform's keys. */
export interface PlatformOptions<T extends PlatformSettings = PlatformSettings> {
  readonly settings: T;
  /** Every key of the settings with its source, from `loadConfig`. Default: the sources are not known. */
  readonly listing?: readonly ConfigSetting[] | undefined;
  /** From `chooseProviders`. */
  readonly providers: readonly ServedProvider[];
  /** Whether the service accepts requests now. A text is the reason why not. Default: always. */
  readonly isReady?: (() => boolean | string) | undefined;
  /** The address of each surface of this process that has a listener, by surface name. Default: not known. */
  readonly listeners?: Listeners | undefined;
  /**
   * The settings again, if their secrets may be replaced while the app is open, from `createLive`. Pass the same to
   * `chooseProviders`. Default: they never change.
   */
  readonly rotating?: Live<RotatingSettings> | undefined;
  /** The other processes that serve the model proxy of this instance. Default: this is the only process. */
  readonly proxyProcesses?: ProxyProcesses | undefined;
  /** Called with a token that was just created, to show it once, and with the service it belongs to. */
  readonly onTokenMade?: ((token: Secret, of: TokenOf) => void) | undefined;
}
