import type { GenericSchema, InferInput, InferOutput } from "valibot";
import type { ChannelContract } from "./channel.ts";
import type { Given, Needs } from "./port.ts";
import type { Contract, Guards, Handlers } from "./route.ts";
import type { PluginScope } from "./scope.ts";

type Schema = GenericSchema<any, any>;

export interface PluginSpec<N extends Needs, S extends Schema, C extends Contract, G extends Guards> {
  readonly name: string;
  /** What the area is, in a sentence, for documents. */
  readonly summary?: string;
  /** Strict schema of the plugin's options. */
  readonly config: S;
  readonly needs: N;
  readonly contract: C;
  /** The realtime channels of the area, for documents: `setup`, or an adapter that the area brings along, opens them. */
  readonly channels?: Readonly<Record<string, ChannelContract>>;
  /** One guard per `auth` scheme that the contract names. */
  guards?(given: Given<N>, config: InferOutput<S>): G;
  /** Called once, after every adapter is open. Returns one handler per contract key. */
  setup(
    given: Given<N>,
    config: InferOutput<S>,
    scope: PluginScope,
  ): Handlers<NoInfer<C>, NoInfer<G>> | Promise<Handlers<NoInfer<C>, NoInfer<G>>>;
}

/** A plugin with its options, ready to stand in a preset. */
export interface Plugin {
  readonly name: string;
  readonly spec: PluginSpec<any, any, any, any>;
  readonly options: unknown;
}

/** Declare a plugin; the result is called with its options where a preset installs it. */
export function definePlugin<const N extends Needs, S extends Schema, C extends Contract, G extends Guards = Guards>(
  spec: PluginSpec<N, S, C, G>,
): (options: InferInput<S>) => Plugin {
  return (options) => ({ name: spec.name, spec, options });
}
