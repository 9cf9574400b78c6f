import { settingsFlags } from "./settings-flags.ts";

/** What a command takes that describes a surface of a preset. */
export const surfaceFlags = {
  preset: { type: "positional", required: false, description: "local (default), proxy, workflow or agent" },
  surface: { type: "string", valueHint: "name", description: "proxy, workflow or agent; needed where the preset has several" },
  ...settingsFlags,
} as const;
