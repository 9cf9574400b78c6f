import type { ports, Preset } from "@portico/core";
import type { PlatformOptions } from "@portico/presets/local";
import type { ListenAddress } from "@portico/presets/settings/listen";
import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { GenericSchema } from "valibot";

/** A program that starts a preset of its own, and runs the commands of `portico` with it. */
export interface Program {
  readonly preset: StartablePreset<any>;
  /** All keys of its configuration. */
  readonly schema: GenericSchema<any, PlatformSettings>;
}

const PROGRAM = Symbol("program");

/** Marks flags, or the settings that were read with them, with the program that was called. Spreading keeps the mark. */
export function withProgram<T extends object>(target: T, program: Program | undefined): T {
  return program ? Object.assign(target, { [PROGRAM]: program }) : target;
}

/** The program that was called. Undefined for `portico`. */
export function programOf(target: object): Program | undefined {
  return (target as { readonly [PROGRAM]?: Program })[PROGRAM];
}

/** A preset that can be run as a service. */
export interface StartablePreset<T extends PlatformSettings = PlatformSettings> {
  readonly name: string;
  readonly build: (options: PlatformOptions<T>) => Preset;
  /** Where its surfaces listen. A surface without an entry listens only on this machine, on a port that the system chooses. */
  readonly addresses: (settings: T) => Readonly<Record<string, ListenAddress>>;
  /** What is wrong with the settings, one line each: checked before a start, and when secrets are read again. */
  readonly problems?: (settings: T) => readonly string[];
  /** Completes the settings, and checks what they name, before the app is opened. Throws CommandFailed. */
  readonly prepare?: (settings: T) => T | Promise<T>;
  /** Warns of what is wrong around an open app, but does not keep it from serving. */
  readonly warn?: (settings: T, log: ports.Log) => Promise<void>;
  /** The surfaces to listen on. Default: all. */
  readonly serves?: (settings: T) => readonly string[];
  /**
   * Whether several processes of this machine can serve its model proxy. `beside areas`: it has other areas, which show the log and count requests.
   * `no proxy`: it has none, so that the setting has no effect. Default: they cannot.
   */
  readonly sharesProxy?: "beside areas" | "alone" | "no proxy";
  /** Whether all data is on servers. The process then has only a temporary folder, which it removes at its end. */
  readonly hasNoData?: boolean;
}
