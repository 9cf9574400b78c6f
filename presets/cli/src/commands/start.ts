import { defineCommand } from "citty";
import { startFlags } from "../settings-flags.ts";

export const startCommand = defineCommand({
  meta: { name: "start", description: "Start a preset and run it until SIGTERM or SIGINT" },
  args: {
    preset: { type: "positional", required: false, description: "local (default), proxy, workflow, agent or cluster" },
    ...startFlags,
    port: {
      type: "string",
      valueHint: "number",
      description: "Port of the listener; for the presets proxy, workflow and agent",
    },
    processes: {
      type: "string",
      valueHint: "number",
      description:
        "How many processes serve the model proxy, or auto: one for each processor (Linux); for the presets local and proxy",
    },
  },
  async run({ args }) {
    const [
      { DEFAULT_PRESET, loadPreset, portKeyOf },
      { runService },
      { readSettings },
      { NUMBER_VARIABLE },
      { CommandFailed, EXIT },
    ] = await Promise.all([
      import("../preset-table.ts"),
      import("../run-service.ts"),
      import("../read-settings.ts"),
      import("../processes/messages.ts"),
      import("../exit-codes.ts"),
    ]);
    const preset = await loadPreset(args.preset ?? DEFAULT_PRESET);
    const onlyPort = args.port === undefined ? undefined : { key: portKeyOf(preset.name), text: args.port };
    if (process.env[NUMBER_VARIABLE] !== undefined && process.connected) {
      const { serveProxyProcess } = await import("../processes/serve-proxy-process.ts");
      // Only this process is one of the proxy, and not what it starts.
      delete process.env[NUMBER_VARIABLE];
      return serveProxyProcess(preset, (configFile) => readSettings({ ...args, onlyPort, configFile }));
    }
    if (args.processes !== undefined && preset.sharesProxy === "no proxy")
      throw new CommandFailed(`--processes is for presets with a model proxy, and ${preset.name} has none`, EXIT.usage);
    await runService(preset, () => readSettings({ ...args, onlyPort }), { json: args.json ?? false });
  },
});
