import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const startCommand = defineCommand({
  meta: { name: "start", description: "Start a preset and run it until SIGTERM or SIGINT" },
  args: {
    preset: { type: "positional", required: false, description: "local (default), proxy, workflow or agent" },
    ...settingsFlags,
    json: { type: "boolean", description: "Write one line of JSON to standard output when everything listens, and nothing else" },
  },
  async run({ args }) {
    const [{ DEFAULT_PRESET, loadPreset }, { serve }, { readSettings }, { welcome }, { VERSION }] = await Promise.all([
      import("../preset-table.ts"),
      import("../serve.ts"),
      import("../read-settings.ts"),
      import("../welcome.ts"),
      import("../../platform/version.ts"),
    ]);
    const preset = await loadPreset(args.preset ?? DEFAULT_PRESET);
    const exitCode = await serve(
      preset,
      () => readSettings(args),
      (service) => {
        const { urls, madeTokens, directory } = service;
        const listeners = Object.fromEntries(Object.entries(urls).map(([name, url]) => [name, { url }]));
        process.stdout.write(
          args.json ? `${JSON.stringify({ event: "ready", pid: process.pid, listeners })}\n` : welcome(service, VERSION),
        );
        // Only a person in front of a terminal sees it; a log file would keep it.
        if (!process.stderr.isTTY) return;
        for (const { of, token } of madeTokens) {
          const name = of === "agent" ? "Agent service token" : "Workflow service token";
          process.stderr.write(`${name}, shown this once (kept in ${directory.credentials}): ${token.reveal()}\n`);
        }
      },
    );
    process.exit(exitCode);
  },
});
