import { areaOf, flattenPreset, type ports } from "@portico/core";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { DEFAULT_PRESET, loadPreset } from "./preset-table.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";

export interface DescribedSurface {
  readonly surface: string;
  /** Everything that the preset has, on this surface and on others. */
  readonly areas: readonly ports.Area[];
}

/**
 * What a preset has on one of its surfaces; nothing is opened for it. Throws CommandFailed (64) for a preset or a surface that is not there,
 * and where several could be meant: a document is of one.
 */
export async function readSurface(
  flags: SettingsFlags,
  wanted: { readonly preset?: string | undefined; readonly surface?: string | undefined },
): Promise<DescribedSurface> {
  const preset = await loadPreset(wanted.preset ?? DEFAULT_PRESET);
  const { settings } = await readSettings(flags);
  const { plugins } = flattenPreset(preset.build({ settings, providers: [] }));
  const areas = plugins.map(areaOf);
  const surfaces = [...new Set(areas.flatMap(({ contract }) => Object.values(contract).map((route) => route.surface)))];
  const surface = wanted.surface ?? (surfaces.length === 1 ? surfaces[0] : undefined);
  const listed = surfaces.join(" and ");
  if (surface === undefined) {
    throw new CommandFailed(`The preset "${preset.name}" has ${listed}: name one with --surface`, EXIT.usage);
  }
  if (!surfaces.includes(surface)) {
    throw new CommandFailed(`The preset "${preset.name}" has no surface "${surface}"; it has ${listed}`, EXIT.usage);
  }
  return { surface, areas };
}
