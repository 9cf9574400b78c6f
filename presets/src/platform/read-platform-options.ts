import { loadConfig } from "@portico/core";
import type { GenericSchema, InferInput, InferOutput } from "valibot";
import { type PlatformConfig, type PlatformSettings, platformSchema } from "../settings/platform.ts";
import type { PlatformOptions } from "./platform-options.ts";
import { chooseProviders } from "./provider-choice.ts";

export interface ReadPlatformOptions {
  /** Variables that win over the given keys, and in which providers are looked for; default: the process's own. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Ends the search for providers. */
  readonly signal?: AbortSignal;
}

type Schema = GenericSchema<any, PlatformSettings>;

/**
 * What a platform preset is built from, for applications that embed one: these keys, spelled as in a configuration file, read and checked, and
 * the providers that they name or that this machine has. Paths are relative to the working directory. Throws ConfigUnusable with a line per
 * problem.
 */
export async function readPlatformOptions(
  config?: PlatformConfig,
  at?: ReadPlatformOptions & { readonly schema?: never },
): Promise<PlatformOptions>;
/** The same for a preset that has keys of its own beside the platform's. */
export async function readPlatformOptions<S extends Schema>(
  config: InferInput<S>,
  at: ReadPlatformOptions & { readonly schema: S },
): Promise<PlatformOptions<InferOutput<S>>>;
export async function readPlatformOptions(
  config: unknown = {},
  { schema = platformSchema, env = process.env, signal }: ReadPlatformOptions & { readonly schema?: Schema } = {},
): Promise<PlatformOptions> {
  const { value: settings } = loadConfig(schema, { options: config, env });
  return { settings, providers: await chooseProviders(settings, { env, ...(signal && { signal }) }) };
}
