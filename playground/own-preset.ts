// A custom preset: the proxy, a second plugin, and settings for both. It starts as `portico start` does.
import { definePreset, optionsOf } from "@portico/core";
import { probes } from "@portico/operator/probes";
import { type PlatformOptions, proxy, proxySchema } from "@portico/presets/proxy";
import { listenSchema, startPreset } from "portico/start";
import * as v from "valibot";
import { notebook, notebookConfig } from "./notebook.ts";

/** All settings of a platform, and the settings of the notebook. */
export const teamSchema = v.strictObject({
  ...proxySchema.entries,
  notebook: v.strictObject({ ...notebookConfig.entries, listen: listenSchema("NOTEBOOK") }),
});

/** Surfaces `proxy` and `notebook`. */
export const team = definePreset((options: PlatformOptions<v.InferOutput<typeof teamSchema>>) => {
  const settings = optionsOf(notebookConfig.entries, options.settings.notebook);
  return {
    name: "team",
    extends: proxy(options),
    plugins: [notebook(settings), probes({ surface: "notebook", isReady: options.isReady })],
  };
});

if (import.meta.main) {
  await startPreset({
    name: "team",
    description: "A model proxy for a team, and its notebook",
    schema: teamSchema,
    build: team,
    addresses: ({ notebook: { listen } }) => ({ notebook: listen }),
  });
}
