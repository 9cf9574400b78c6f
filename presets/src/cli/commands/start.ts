import { defineCommand } from "citty";
import { startFlags } from "../settings-flags.ts";

export const startCommand = defineCommand({
  meta: { name: "start", description: "Start a preset and run it until SIGTERM or SIGINT" },
  args: {
    preset: { type: "positional", required: false, description: "local (default), proxy, workflow, agent or cluster" },
    ...startFlags,
  },
  async run({ args }) {
    const [{ DEFAULT_PRESET, loadPreset }, { runService }, { readSettings }] = await Promise.all([
      import("../preset-table.ts"),
      import("../run-service.ts"),
      import("../read-settings.ts"),
    ]);
    const preset = await loadPreset(args.preset ?? DEFAULT_PRESET);
    await runService(preset, () => readSettings(args), { json: args.json ?? false });
  },
});
