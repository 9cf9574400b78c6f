/** The flags that every command with settings takes. */
export const settingsFlags = {
  config: {
    type: "string",
    valueHint: "file",
    description: "Configuration file; default: portico.config.{ts,mjs,json,yaml} in this folder",
  },
  "data-dir": { type: "string", valueHint: "dir", description: "Data directory; default: .portico in this folder" },
} as const;

export interface SettingsFlags {
  readonly config?: string | undefined;
  readonly "data-dir"?: string | undefined;
}
