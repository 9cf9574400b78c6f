import { type ConfigSetting, ConfigUnusable, loadConfig } from "@portico/core";
import { type PlatformSettings, platformSchema } from "../settings/platform.ts";
import { readConfigFile } from "./config-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import type { SettingsFlags } from "./settings-flags.ts";

export interface ReadSettings {
  readonly settings: PlatformSettings;
  /** Every key with its source, for people. */
  readonly listing: readonly ConfigSetting[];
  /** The configuration file, where there is one. */
  readonly file: string | undefined;
}

/** The effective settings of this command line, environment and working directory. Throws CommandFailed (78): one line per problem. */
export async function readSettings(flags: SettingsFlags): Promise<ReadSettings> {
  const file = await readConfigFile(flags.config, process.cwd());
  try {
    const { value, settings } = loadConfig(platformSchema, {
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
