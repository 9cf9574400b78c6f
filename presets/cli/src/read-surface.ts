import { areaOf, flattenPreset, type ports } from "@portico/core";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { DEFAULT_PRESET, loadPreset } from "./preset-table.ts";
import { programOf, type StartablePreset } from "./program.ts";
import { readSettings } from "./read-settings.ts";
import type { SettingsFlags } from "./settings-flags.ts";

interface DescribedSurface {
  readonly surface: string;
  /** All plugins of the preset, on this surface and on others. */
  readonly areas: readonly ports.Area[];
}

/**
 * The parts of a preset on one of its surfaces. Opens nothing. Throws CommandFailed (64) for an unknown preset or surface,
 * and if no surface is named although the preset has several: a document describes one surface.
 */
export async function readSurface(
  flags: SettingsFlags,
  wanted: { readonly preset?: string | undefined; readonly surface?: string | undefined },
): Promise<DescribedSurface> {
  const own = wanted.preset === undefined ? programOf(flags)?.preset : undefined;
  const preset: StartablePreset = own ?? (await loadPreset(wanted.preset ?? DEFAULT_PRESET));
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
