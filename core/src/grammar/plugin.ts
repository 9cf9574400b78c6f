import * as v from "valibot";
import type { GenericSchema, InferInput, InferOutput } from "valibot";
import type { Adapter } from "./adapter.ts";
import type { ChannelContract } from "./channel.ts";
import type { Security } from "../derive/security-schemes.ts";
import type { Given, Needs } from "./port.ts";
import type { Contract, Guards, Handlers } from "./contract.ts";
import type { Scope } from "./scope.ts";
import { optionProblems } from "../config/load-config.ts";
import type { Area } from "../ports/areas.ts";

type Schema = GenericSchema<any, any>;

/** What `definePlugin` takes: one area with its contract, its handlers, and what they need. */
export interface PluginSpec<N extends Needs, S extends Schema, C extends Contract, G extends Guards> {
  readonly name: string;
  /** One sentence about the area, for documents. */
  readonly summary?: string;
  /** Strict schema of the plugin's options. */
  readonly config: S;
  readonly needs: N;
  readonly contract: C;
  /** The realtime channels of the area, for documents. `setup`, or an adapter that the area brings along, opens them. */
  readonly channels?: Readonly<Record<string, ChannelContract>>;
  /** How callers present the credential of each `auth` scheme that the contract names, for documents. */
  readonly security?: Security;
  /**
   * What clients can do because the app has the area. The handshake of the agent service reports each of these words with `true`.
   * Made from the area's options, so that disabled features are not reported.
   */
  capabilities?(config: InferOutput<S>): readonly string[];
  /**
   * Adapters that the area brings along, made from its options. They are opened with the preset's own, which take precedence. A
   * brought adapter is left out if the preset has an adapter for the same single port or with the same name, or if `without` of
   * the preset names it.
   */
  provides?(config: InferOutput<S>): readonly Adapter[];
  /** One guard per `auth` scheme that the contract names. */
  guards?(given: Given<N>, config: InferOutput<S>): G;
  /** Called once, after every adapter is open. Returns one handler per contract key. */
  setup(
    given: Given<N>,
    config: InferOutput<S>,
    scope: Scope,
  ): Handlers<NoInfer<C>, NoInfer<G>> | Promise<Handlers<NoInfer<C>, NoInfer<G>>>;
}

/** A plugin with its options, ready to be listed in a preset. */
export interface Plugin {
  readonly name: string;
  readonly spec: PluginSpec<any, any, any, any>;
  readonly options: unknown;
}

/** Declare a plugin; the result is called with its options where a preset installs it. */
export function definePlugin<const N extends Needs, S extends Schema, C extends Contract, G extends Guards = Guards>(
  spec: PluginSpec<N, S, C, G>,
): (options: InferInput<S>) => Plugin {
  const make = (options: InferInput<S>): Plugin => ({ name: spec.name, spec, options });
  // A preset that lists the function itself is refused with this name.
  return Object.defineProperty(make, "name", { value: spec.name });
}

/** A plugin's options as its schema parses them. Throws a line for each invalid option, as `loadConfig` does for settings. */
export function pluginConfig({ spec, options }: Plugin): unknown {
  const config = v.safeParse(spec.config, options);
  if (config.success) return config.output;
  const lines = optionProblems(spec.config, options, config.issues).map((line) => `  ${line}`);
  throw new Error(`Plugin "${spec.name}" was given options that it does not take:\n${lines.join("\n")}`);
}

/** The adapters that plugins bring along, in order of the plugins. Throws as `pluginConfig` does. */
export function broughtBy(plugins: readonly Plugin[]): readonly Adapter[] {
  return plugins.flatMap((plugin) => {
    const brought = plugin.spec.provides?.(pluginConfig(plugin)) ?? [];
    return brought.map((adapter) => ({ ...adapter, broughtBy: plugin.name }));
  });
}

/** Whether `adapter` replaces `other`: a single port has one adapter, and a name identifies one adapter. */
export function replaces(adapter: Adapter, other: Adapter): boolean {
  return adapter.name === other.name || (!other.spec.port.many && adapter.spec.port.id === other.spec.port.id);
}

/**
 * The public description of a plugin. Nothing is opened for it, because contracts are data. Throws a sentence if the plugin does
 * not accept its options.
 */
export function areaOf(plugin: Plugin): Area {
  const { name, spec } = plugin;
  return {
    name,
    summary: spec.summary,
    contract: spec.contract,
    channels: spec.channels ?? {},
    security: spec.security ?? {},
    capabilities: spec.capabilities?.(pluginConfig(plugin)) ?? [],
  };
}
