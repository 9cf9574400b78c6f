import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const configCommand = defineCommand({
  meta: {
    name: "config",
    description: "Print the effective settings: every key, its value, its source and its environment variable",
  },
  args: {
    json: { type: "boolean", description: "Print a JSON array" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { readSettings } = await import("../read-settings.ts");
    const { listing } = await readSettings(args);
    if (args.json) {
      const plain = listing.map(({ path, value, source, env, reference }) => ({
        key: path,
        value: value ?? null,
        source,
        env: env ?? null,
        reference,
      }));
      return console.log(JSON.stringify(plain, null, 2));
    }
    const { table } = await import("../terminal.ts");
    const shown = (value: unknown) => (value === undefined ? "(none)" : value === "***" ? "***" : JSON.stringify(value));
    console.log(
      table(
        ["KEY", "VALUE", "SOURCE", "ENVIRONMENT VARIABLE"],
        listing.map(({ path, value, source, env, reference }) => [
          path,
          shown(value) + (reference ? ` from ${reference}` : ""),
          source,
          env ?? "",
        ]),
      ),
    );
  },
});
