import type { Adapter } from "./adapter.ts";
import { nearestWord } from "./config/nearest.ts";
import type { Plugin } from "./plugin.ts";
import type { SurfaceOptions } from "./surface.ts";

/** A chosen set of adapters and plugins. */
export interface Preset {
  readonly name: string;
  /** Start from another preset; see `flattenPreset` for who wins. */
  readonly extends?: Preset;
  /**
   * Names of plugins and adapters that are not taken over from what it extends: an area whose plugin is left out is not there, and its paths
   * are unknown ones.
   */
  readonly without?: readonly string[];
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
 * parent's; adapters of a many-port are added to the parent's; what it says of a surface replaces what the parent said of it. Throws a
 * sentence where it leaves out what the parent does not have: a misspelt name must not leave an area switched on.
 */
export function flattenPreset(preset: Preset): FlatPreset {
  const base = withoutParts(
    preset,
    preset.extends ? flattenPreset(preset.extends) : { name: "", adapters: [], plugins: [], surfaces: {} },
  );
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

type FlatPreset = Required<Omit<Preset, "extends" | "without">>;

function withoutParts({ name, without = [] }: Preset, base: FlatPreset): FlatPreset {
  const known = [...base.plugins, ...base.adapters].map((part) => part.name);
  const stranger = without.find((each) => !known.includes(each));
  if (stranger !== undefined) {
    const nearest = nearestWord(stranger, known);
    throw new Error(
      `Preset "${name}" leaves out "${stranger}", which what it extends does not have${nearest ? `; did you mean "${nearest}"?` : ""}`,
    );
  }
  const stays = (part: { readonly name: string }) => !without.includes(part.name);
  return { ...base, adapters: base.adapters.filter(stays), plugins: base.plugins.filter(stays) };
}
