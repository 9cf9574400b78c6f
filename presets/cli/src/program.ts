import type { PlatformSettings } from "@portico/presets/settings/platform";
import type { GenericSchema } from "valibot";
import type { StartablePreset } from "./startable-preset.ts";

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
