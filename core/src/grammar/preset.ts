import type { Adapter } from "./adapter.ts";
import { broughtBy, type Plugin, replaces } from "./plugin.ts";
import { foundKind, nearestWord } from "../config/problem.ts";
import type { SurfaceOptions } from "../http/surface.ts";

/** A set of adapters and plugins. */
export interface Preset {
  readonly name: string;
  /** Extends another preset. `flattenPreset` defines which parts win. */
  readonly extends?: Preset;
  /**
   * Names of plugins and adapters that are not inherited from the extended preset, including adapters that its plugins bring
   * along. Without its plugin, an area does not exist, and its paths are unknown.
   */
  readonly without?: readonly string[];
  readonly adapters?: readonly Adapter[];
  readonly plugins?: readonly Plugin[];
  /** Options of whole surfaces, by surface name. */
  readonly surfaces?: Readonly<Record<string, SurfaceOptions>>;
  /**
   * Called when the app is open, with its name and all its adapters. Those of extended presets are called first. An error closes the app, and fails
   * its start.
   */
  readonly onOpen?: (opened: OpenedPreset) => void;
}

/** What an app opened. */
export interface OpenedPreset {
  readonly name: string;
  readonly adapters: readonly Adapter[];
}

/** Declare a preset that has options. */
export function definePreset<O = void>(build: (options: O) => Preset): (options: O) => Preset {
  return build;
}

/**
 * Merges a preset with all presets that it extends. Children win: an adapter for the same single port, or a plugin of the same
 * name, replaces the parent's. Adapters of a many-port are added to the parent's. Surface options replace the parent's options of
 * the same surface. Throws a sentence if `without` names a part that the parent does not have: a misspelled name must not leave
 * an area enabled. Throws a sentence for a part that was not called, not spread, or is in the wrong list.
 */
export function flattenPreset(preset: Preset): FlatPreset {
  checkParts(preset);
  const base = withoutParts(
    preset,
    preset.extends
      ? flattenPreset(preset.extends)
      : { name: "", adapters: [], plugins: [], surfaces: {}, without: [], onOpen: () => {} },
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
    without: base.without,
    onOpen(opened) {
      base.onOpen(opened);
      preset.onOpen?.(opened);
    },
  };
}

/** A preset that extends no other. `without` then holds names of adapters that its plugins would bring along. */
export type FlatPreset = Required<Omit<Preset, "extends">>;

/** All adapters of an app: the preset's own, and those that its plugins bring along. */
export function allAdapters({ adapters, plugins, without }: FlatPreset): readonly Adapter[] {
  const brought = broughtBy(plugins).filter(
    (adapter) => !without.includes(adapter.name) && !adapters.some((own) => replaces(own, adapter)),
  );
  return [...adapters, ...brought];
}

function withoutParts({ name, without = [] }: Preset, base: FlatPreset): FlatPreset {
  if (without.length === 0) return base;
  const known = [...base.plugins, ...allAdapters(base)].map((part) => part.name);
  const stranger = without.find((each) => !known.includes(each));
  if (stranger !== undefined) {
    const nearest = nearestWord(stranger, known);
    throw new Error(
      `Preset "${name}" leaves out "${stranger}", which what it extends does not have${nearest ? `; did you mean "${nearest}"?` : ""}`,
    );
  }
  const stays = (part: { readonly name: string }) => !without.includes(part.name);
  return {
    ...base,
    adapters: base.adapters.filter(stays),
    plugins: base.plugins.filter(stays),
    without: [...base.without, ...without],
  };
}

/** The parts of a preset, as they may be given without types. */
interface GivenParts {
  readonly name: string;
  readonly extends?: unknown;
  readonly adapters?: readonly unknown[];
  readonly plugins?: readonly unknown[];
}

/** Throws a sentence for a part of a preset that was not called, not spread, or is in the wrong list. */
export function checkParts(preset: GivenParts): void {
  if (typeof preset === "function") throw new TypeError("A preset was not called: write local(options), not local");
  const { name, adapters = [], plugins = [] } = preset;
  if (typeof preset.extends === "function")
    throw new TypeError(`Preset "${name}" extends a preset that was not called: write extends: local(options)`);
  adapters.forEach((part, at) => checkPart(name, "adapters", at, part));
  plugins.forEach((part, at) => checkPart(name, "plugins", at, part));
}

const KINDS = {
  adapters: { one: "an adapter", mark: "port", other: "a plugin: list it in plugins" },
  plugins: { one: "a plugin", mark: "contract", other: "an adapter: list it in adapters" },
} as const;

function checkPart(preset: string, list: keyof typeof KINDS, at: number, given: unknown): void {
  const place = `Preset "${preset}", ${list}[${at}]`;
  const { one, mark, other } = KINDS[list];
  if (typeof given === "function") {
    const named = given.name === "" ? one : `"${given.name}"`;
    throw new TypeError(`${place}: ${named} was not called. Call the function with its options, or with {}`);
  }
  if (Array.isArray(given)) throw new TypeError(`${place} is a list. Spread it: ...${list}`);
  const spec: unknown = typeof given === "object" && given !== null && "spec" in given ? given.spec : undefined;
  if (typeof spec !== "object" || spec === null) throw new TypeError(`${place} is ${foundKind(given)}, not ${one}`);
  if (mark in spec) return;
  throw new TypeError(`${place} is ${"port" in spec || "contract" in spec ? other : `${foundKind(given)}, not ${one}`}`);
}
