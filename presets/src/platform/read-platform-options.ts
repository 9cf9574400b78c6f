import { loadConfig } from "@portico/core";
import type { GenericSchema, InferInput, InferOutput } from "valibot";
import { type PlatformConfig, type PlatformSettings, platformSchema } from "../settings/platform.ts";
import type { PlatformOptions } from "./platform-options.ts";
import { chooseProviders } from "./provider-choice.ts";

export interface ReadPlatformOptions {
  /** Environment variables. They override the given keys, and providers are searched in them. Default: `process.env`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Aborts the search for providers. */
  readonly signal?: AbortSignal;
}

type Schema = GenericSchema<any, PlatformSettings>;

/**
 * The options of a platform preset, for applications that embed one. Parses and checks these keys, which have the format of a configuration file, and
 * finds the providers that they name or that this machine has. Paths are relative to the working directory. Throws ConfigUnusable with a line per
 * problem.
 */
export async function readPlatformOptions(
  config?: PlatformConfig,
  at?: ReadPlatformOptions & { readonly schema?: never },
): Promise<PlatformOptions>;
/** The same for a preset that adds its own keys to the platform's keys. */
export async function readPlatformOptions<S extends Schema>(
  config: InferInput<S>,
  at: ReadPlatformOptions & { readonly schema: S },
): Promise<PlatformOptions<InferOutput<S>>>;
export async function readPlatformOptions(
  config: unknown = {},
  { schema = platformSchema, env = process.env, signal }: ReadPlatformOptions & { readonly schema?: Schema } = {},
): Promise<PlatformOptions> {
  const { value: settings, settings: listing } = loadConfig(schema, { options: config, env });
  return { settings, listing, providers: await chooseProviders(settings, { env, ...(signal && { signal }) }) };
}
