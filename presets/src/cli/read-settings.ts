import { type ConfigSetting, ConfigUnusable, loadConfig } from "@portico/core";
import type { GenericSchema } from "valibot";
import { type PlatformSettings, platformSchema } from "../settings/platform.ts";
import { readConfigFile } from "./config-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import type { SettingsFlags } from "./settings-flags.ts";

export interface ReadSettings<T extends PlatformSettings = PlatformSettings> {
  readonly settings: T;
  /** Every key with its source, for people. */
  readonly listing: readonly ConfigSetting[];
  /** The configuration file, where there is one. */
  readonly file: string | undefined;
}

/** The effective settings of this command line, environment and working directory. Throws CommandFailed (78): one line per problem. */
export async function readSettings(flags: SettingsFlags): Promise<ReadSettings>;
/** The same for a preset that has keys of its own beside the platform's. */
export async function readSettings<T extends PlatformSettings>(
  flags: SettingsFlags,
  schema: GenericSchema<any, T>,
): Promise<ReadSettings<T>>;
export async function readSettings(
  flags: SettingsFlags,
  schema: GenericSchema<any, PlatformSettings> = platformSchema,
): Promise<ReadSettings> {
  const file = await readConfigFile(flags.config, process.cwd());
  try {
    const { value, settings } = loadConfig(schema, {
      file,
      env: process.env,
      flags: [{ key: "dataDir", flag: "--data-dir", value: flags["data-dir"] }],
    });
    return { settings: value, listing: settings, file: file?.path };
  } catch (error) {
    if (error instanceof ConfigUnusable) throw new CommandFailed(error.message, EXIT.config);
    throw error;
  }
}
