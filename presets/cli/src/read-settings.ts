import { type ConfigFlag, type ConfigSetting, ConfigUnusable, loadConfig, type SecretFile } from "@portico/core";
import { type PlatformSettings, platformSchema } from "@portico/presets/settings/platform";
import type { GenericSchema } from "valibot";
import { type ConfigFile, readConfigFile } from "./config-file.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { programOf, withProgram } from "./program.ts";
import type { SettingsFlags } from "./settings-flags.ts";

export interface ReadSettings<T extends PlatformSettings = PlatformSettings> {
  readonly settings: T;
  /** Every key with its source, as text for people. */
  readonly listing: readonly ConfigSetting[];
  /** The files that secrets were read from. */
  readonly secretFiles: readonly SecretFile[];
  /** The configuration file, if one exists. */
  readonly file: string | undefined;
  /** The same, with its content. */
  readonly configFile: ConfigFile | undefined;
}

/**
 * The effective settings from the command line, the environment and the working directory. Throws CommandFailed (78): one line per problem. With the
 * keys of the program that was called.
 */
export async function readSettings(flags: SettingsFlags): Promise<ReadSettings>;
/** The same for a preset that adds its own keys to the platform's keys. */
export async function readSettings<T extends PlatformSettings>(
  flags: SettingsFlags,
  schema: GenericSchema<any, T>,
): Promise<ReadSettings<T>>;
export async function readSettings(
  flags: SettingsFlags,
  schema: GenericSchema<any, PlatformSettings> = programOf(flags)?.schema ?? platformSchema,
): Promise<ReadSettings> {
  const file = flags.configFile ?? (await readConfigFile(flags.config, process.cwd()));
  try {
    const { value, settings, secretFiles } = loadConfig(schema, {
      file,
      env: process.env,
      flags: [
        { key: "dataDir", flag: "--data-dir", value: flags["data-dir"] },
        { key: "https.enabled", flag: "--https", value: flags.https },
        { key: "https.cert", flag: "--https-cert", value: flags["https-cert"] },
        { key: "https.key", flag: "--https-key", value: flags["https-key"] },
        ...numberFlag("proxy.processes", "--processes", flags.processes),
        ...numberFlag(flags.onlyPort?.key ?? "", "--port", flags.onlyPort?.text),
      ],
    });
    return { settings: withProgram(value, programOf(flags)), listing: settings, secretFiles, file: file?.path, configFile: file };
  } catch (error) {
    if (error instanceof ConfigUnusable) throw new CommandFailed(error.message, EXIT.config);
    throw error;
  }
}

/** Text that is not a number is left for the schema. */
function numberFlag(key: string, flag: string, text: string | undefined): readonly ConfigFlag[] {
  return text === undefined ? [] : [{ key, flag, value: /^\d+$/.test(text) ? Number(text) : text }];
}
