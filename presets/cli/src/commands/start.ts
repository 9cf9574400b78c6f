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
  },
  async run({ args }) {
    const [{ DEFAULT_PRESET, loadPreset, portKeyOf }, { runService }, { readSettings }] = await Promise.all([
      import("../preset-table.ts"),
      import("../run-service.ts"),
      import("../read-settings.ts"),
    ]);
    const preset = await loadPreset(args.preset ?? DEFAULT_PRESET);
    const onlyPort = args.port === undefined ? undefined : { key: portKeyOf(preset.name), text: args.port };
    await runService(preset, () => readSettings({ ...args, onlyPort }), { json: args.json ?? false });
  },
});
