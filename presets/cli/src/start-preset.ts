import type { PlatformSettings } from "@portico/presets/settings/platform";
import { defineCommand } from "citty";
import type { GenericSchema } from "valibot";
import { platformAddresses } from "./preset-table.ts";
import type { StartablePreset } from "./program.ts";
import { readSettings } from "./read-settings.ts";
import { runCommandLine } from "./run-command-line.ts";
import { runService } from "./run-service.ts";
import { serviceCommands } from "./service-commands.ts";
import { startFlags } from "./settings-flags.ts";

export { listenSchema, type ListenAddress } from "@portico/presets/settings/listen";

/** A custom preset, and how to start it. */
export interface OwnPreset<T extends PlatformSettings> extends Pick<StartablePreset<T>, "name" | "build"> {
  /** Its purpose, for `--help`. */
  readonly description?: string;
  /** All keys of a platform, and the preset's own keys: `v.strictObject({ ...proxySchema.entries, notebook: notebookConfig })`. */
  readonly schema: GenericSchema<any, T>;
  /**
   * Where its own surfaces listen; the surfaces of a platform are known. A surface without an entry listens only on this machine, on a port
   * that the system chooses.
   */
  readonly addresses?: StartablePreset<T>["addresses"];
}

/**
 * Run a custom preset in the same way as `portico start`: settings from flags, environment and configuration file, a data directory with
 * its lock and `endpoints.json`, one listener per surface, the ready line, a graceful shutdown. Ends the process, with the same exit codes.
 *
 * If the arguments begin with a command of `portico`, such as `doctor`, `workflow check` or `backup`, runs this command with the preset: it knows the
 * preset's settings, kinds of workflow nodes and stores.
 *
 * @param args Default: the arguments of the process. The flags of the start are `--config`, `--data-dir`, `--json` and `--help`.
 */
export async function startPreset<T extends PlatformSettings>(
  { name, description, schema, build, addresses }: OwnPreset<T>,
  args: readonly string[] = process.argv.slice(2),
): Promise<void> {
  const preset: StartablePreset<T> = {
    ...{ name, build },
    addresses: (settings) => ({ ...platformAddresses(settings), ...addresses?.(settings) }),
  };
  const start = defineCommand({
    meta: { name: "start", description: `Start the preset ${name} and run it until SIGTERM or SIGINT; the default` },
    args: startFlags,
    async run({ args: flags }) {
      await runService(preset, () => readSettings(flags, schema), { json: flags.json ?? false });
    },
  });
  const root = defineCommand({
    meta: { name, description: description ?? `The preset ${name}` },
    default: "start",
    subCommands: { start, ...serviceCommands },
  });
  await runCommandLine(root, args, { preset, schema });
}
