import { settingsFlags } from "./settings-flags.ts";

/** Arguments of the commands that describe a surface of a preset. */
export const surfaceFlags = {
  preset: { type: "positional", required: false, description: "local (default), proxy, workflow or agent" },
  surface: {
    type: "string",
    valueHint: "name",
    description: "proxy, workflow or agent; required if the preset has several surfaces",
  },
  ...settingsFlags,
} as const;
