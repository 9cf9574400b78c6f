import type { Adapter } from "./adapter.ts";
import type { Plugin } from "./plugin.ts";
import type { SurfaceOptions } from "./surface.ts";

/** A chosen set of adapters and plugins. */
export interface Preset {
  readonly name: string;
  /** Start from another preset; see `flattenPreset` for who wins. */
  readonly extends?: Preset;
  readonly adapters?: readonly Adapter[];
  readonly plugins?: readonly Plugin[];
  /** What goes for whole surfaces, by their names. */
  readonly surfaces?: Readonly<Record<string, SurfaceOptions>>;
}

/** Declare a preset that takes options. */
export function definePreset<O = void>(build: (options: O) => Preset): (options: O) => Preset {
  return build;
}

/**
 * A preset with everything it extends. Children win: an adapter for the same single port, or a plugin of the same name, replaces the
 * parent's; adapters of a many-port are added to the parent's; what it says of a surface replaces what the parent said of it.
 */
export function flattenPreset(preset: Preset): Required<Omit<Preset, "extends">> {
  const base = preset.extends ? flattenPreset(preset.extends) : { name: "", adapters: [], plugins: [], surfaces: {} };
  const adapters = preset.adapters ?? [];
  const plugins = preset.plugins ?? [];
  return {
    name: preset.name,
    adapters: [
      ...base.adapters.filter((old) => old.spec.port.many || !adapters.some((own) => own.spec.port.id === old.spec.port.id)),
      ...adapters,
    ],
    plugins: [...base.plugins.filter((old) => !plugins.some((own) => own.name === old.name)), ...plugins],
    surfaces: { ...base.surfaces, ...preset.surfaces },
  };
}
